"""Character sets that files declare."""

from __future__ import annotations

import pytest

from interlingua.corpus.charsets import decoded, is_decoded, known_charset


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("UTF-8", "utf-8"),
        ("US-ASCII", "utf-8"),
        ("latin1", "iso8859-1"),
        ("windows-1251", "cp1251"),
        ("Shift_JIS", "shift_jis"),
        ("rot13", None),
        ("base64", None),
        ("punycode", None),
        ("CHARSET", None),
    ],
)
def test_character_sets_of_texts_are_known_and_no_others(name, expected):
    assert known_charset(name) == expected


@pytest.mark.parametrize(
    ("content", "charset", "expected"),
    [
        ("é".encode("latin-1"), "iso8859-1", "é"),
        ("é".encode(), "iso8859-1", "é"),  # declared wrongly, as many files do
        ("語".encode("shift_jis"), "shift_jis", "語"),
        ("é".encode("latin-1"), "utf-8", "\udce9"),
    ],
)
def test_the_declared_set_is_used_unless_the_text_is_utf_8(content, charset, expected):
    text = decoded(content, charset)
    assert text == expected
    assert is_decoded(text) == (expected != "\udce9")
