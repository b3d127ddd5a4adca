import zipfile

import pytest

from interlingua.corpus.formats.bitext import PairWithFields, TextPair, read_pairs, write_pairs
from interlingua.errors import DamagedFileError, DataError
from tests.corpus.conftest import write

ONE = TextPair("eins", "one", "deu_Latn", "eng_Latn")


def two_files(folder, name="corpus", german="eins\nzwei\n", english="one\ntwo\n"):
    write(folder / f"{name}.de", german)
    write(folder / f"{name}.en", english)
    return folder / name


@pytest.mark.parametrize("named", ["prefix", "first", "second", "tuple", "comma"])
def test_every_way_to_name_a_pair(tmp_path, named):
    prefix = two_files(tmp_path, "News.de-en")
    first, second = f"{prefix}.de", f"{prefix}.en"
    path = {
        "prefix": prefix,
        "first": first,
        "second": second,
        "tuple": (first, second),
        "comma": f"{first},{second}",
    }
    assert list(read_pairs(path[named])) == [ONE, TextPair("zwei", "two", "deu_Latn", "eng_Latn")]


def test_languages_choose_among_many_files(tmp_path):
    two_files(tmp_path)
    (tmp_path / "corpus.fr").write_text("un\ndeux\n")
    pairs = read_pairs(tmp_path / "corpus", source_language="fr", target_language="de")
    assert next(pairs) == TextPair("un", "eins", "fra_Latn", "deu_Latn")
    with pytest.raises(DataError, match=r"corpus\.<source> and .*, found .*corpus\.fr"):
        next(read_pairs(tmp_path / "corpus"))


def test_files_of_other_names(tmp_path):
    (tmp_path / "left.txt").write_text("eins\r\n")
    (tmp_path / "right.txt").write_text("one\r\n")
    both = (tmp_path / "left.txt", tmp_path / "right.txt")
    assert list(read_pairs(both, source_language="de", target_language="en")) == [ONE]
    with pytest.raises(DataError, match="--source-language and --target-language"):
        next(read_pairs(both))


@pytest.mark.parametrize(
    ("german", "english", "short"),
    [("eins\n", "one\ntwo\n", "de"), ("eins\nzwei\n", "one\n", "en")],
)
def test_misaligned_files_name_the_short_one_and_its_line(tmp_path, german, english, short):
    prefix = two_files(tmp_path, "x.de-en", german, english)
    with pytest.raises(DataError, match=r"has more lines.*aligned") as caught:
        list(read_pairs(prefix))
    assert str(caught.value).startswith(f"{prefix}.{short}:2: the file ends here")


def test_a_bad_byte_is_reported_for_its_own_file(tmp_path):
    prefix = two_files(tmp_path, "x.de-en")
    (tmp_path / "x.de-en.de").write_bytes(b"eins\n\xff\n")
    with pytest.raises(DataError, match=r"x\.de-en\.de:2: not UTF-8"):
        list(read_pairs(prefix))


def test_the_written_names_carry_codes_and_compression(tmp_path):
    assert write_pairs([ONE], tmp_path / "x.gz", format="moses") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.de.gz", "x.en.gz"]
    with pytest.raises(DataError, match="nothing is written"):
        write_pairs([], tmp_path / "y")
    scripts = [TextPair("a", "b", "zho_Hans", "zho_Hant")]
    write_pairs(scripts, tmp_path / "z")
    named = {"source_language": "zho_Hans", "target_language": "zho_Hant"}
    assert list(read_pairs(tmp_path / "z", **named)) == scripts
    write_pairs([ONE], f"{tmp_path / 'l.txt'},{tmp_path / 'r.txt'}", format="moses")
    assert (tmp_path / "r.txt").read_text() == "one\n"


def opus(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_opus_zip_with_its_other_members(tmp_path):
    members = {
        "README": "r",
        "LICENSE": "l",
        "Tatoeba.de-en.xml": "<x/>",
        "Tatoeba.de-en.de": "\ufeffeins\nzwei\u2028drei\n",
        "Tatoeba.de-en.en": "one\ntwo\n",
    }
    path = opus(tmp_path / "de-en.txt.zip", members)
    second = TextPair("zwei\u2028drei", "two", "deu_Latn", "eng_Latn")
    assert list(read_pairs(path)) == [ONE, second]
    turned = read_pairs(path, source_language="en", target_language="de")
    assert next(turned) == ONE.swapped()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"a.de-en.de": "eins\nzwei\n", "a.de-en.en": "one\n"},
            r"a\.de-en\.en:2: the file ends here",
        ),
        (
            {"a.de-en.de": b"eins\n\xff\n", "a.de-en.en": "one\ntwo\n"},
            r"a\.de-en\.de:2: .*not UTF-8",
        ),
        ({"a.xml": "x"}, "expected two members"),
    ],
)
def test_broken_opus_zips(tmp_path, members, message):
    with pytest.raises(DataError, match=message):
        list(read_pairs(opus(tmp_path / "x.zip", members)))


def test_no_zip_and_a_damaged_member(tmp_path):
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK not at all")
    with pytest.raises(DataError, match=r"x\.zip: .*zip archive"):
        list(read_pairs(path))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_pairs(tmp_path / "none.zip"))
    opus(path, {"a.de-en.de": "eins\n" * 9, "a.de-en.en": "one\n" * 9})
    content = path.read_bytes()
    path.write_bytes(content.replace(b"eins\neins", b"eins\nzwei", 1))
    with pytest.raises(DamagedFileError, match=r"x\.zip!a\.de-en\.de: is damaged"):
        list(read_pairs(path))


def test_languages_of_two_files_that_are_named_as_text(tmp_path):
    for name, text in (("b.de.txt", "eins\n"), ("b.en.txt", "one\n")):
        (tmp_path / name).write_text(text)
    assert list(read_pairs(f"{tmp_path}/b.de.txt,{tmp_path}/b.en.txt")) == [ONE]


def test_two_regions_of_one_language_are_two_files(tmp_path):
    for code in ("en_US", "en_GB", "de_CH"):
        (tmp_path / f"ui.{code}").write_text(f"{code}\n")
    found = read_pairs(tmp_path / "ui", source_language="en-GB", target_language="en-US")
    assert [pair[:2] for pair in found] == [("en_GB", "en_US")]
    found = read_pairs(tmp_path / "ui", source_language="de", target_language="en-US")
    assert [pair[:2] for pair in found] == [("de_CH", "en_US")]


@pytest.mark.parametrize("name", ["out", "out.zip", "out.po"])
def test_values_without_a_place_are_named_once(tmp_path, caplog, name):
    pairs = [
        PairWithFields.of(TextPair("a", "b", "deu_Latn", "eng_Latn", 0.5), {"file": f"{n}.po"})
        for n in range(3)
    ]
    format = {"out": "moses", "out.zip": "opus", "out.po": "gettext"}[name]
    assert write_pairs(pairs, tmp_path / name, format=format) == 3
    (record,) = caplog.records
    text = record.getMessage()
    assert str(tmp_path / name) in text
    assert "score, file" in text
    assert ".jsonl" in text
    caplog.clear()
    plain = [TextPair("a", "b", "deu_Latn", "eng_Latn")]
    write_pairs(plain, tmp_path / name, format=format)
    assert not caplog.records
