import pytest

from interlingua.corpus.formats.charsets import decoded, is_decoded, known_charset


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("UTF-8", "utf-8"),
        ("us-ascii", "utf-8"),
        ("ISO-8859-1", "iso8859-1"),
        ("windows-1252", "cp1252"),
        ("Shift_JIS", "shift_jis"),
        ("idna", None),
        ("utf-7", None),
        ("nothing", None),
    ],
)
def test_texts_are_written_in_some_character_sets_alone(name, known):
    assert known_charset(name) == known


def test_valid_utf8_is_read_whatever_is_declared_but_in_sets_of_several_bytes():
    assert decoded("grün".encode(), "iso8859-1") == "grün"
    assert decoded("grün".encode("latin-1"), "iso8859-1") == "grün"
    assert decoded("联通".encode("gbk"), "gbk") == "联通"
    assert is_decoded(decoded(b"gr\xfcn", "utf-8")) is False
    assert is_decoded(decoded(b"ok", "utf-8"))
