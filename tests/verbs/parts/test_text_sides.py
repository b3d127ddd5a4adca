"""Text files of two languages in folders: sides, languages of names, and pairs of files."""

from __future__ import annotations

import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.verbs.parts.text_sides import (
    list_sides_of_text,
    pair_files_by_name,
    refuse_pairs,
)

GERMAN = "Der Hund ist im Haus und die Katze nicht.\n"
ENGLISH = "The dog is in the house and the cat is not.\n"


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(names, text=GERMAN):
        for name in names.split():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)

    return write


def pairs_of(source, target=None, given=(None, None), **options):
    one, others, left_out = list_sides_of_text(source, target, given, **options)
    pairs = pair_files_by_name(one, others, left_out)
    return [(pair.source, pair.target, *pair.languages) for pair in pairs], left_out


@pytest.mark.parametrize(
    ("source", "target", "roots"),
    [
        ("de/a.txt", "en/a.txt", ("de", "en")),
        ("de/sub/a.txt", "en/sub/a.md", ("de", "en")),
        ("x/a.de.txt", "y/a.en.txt", ("x", "y")),
        ("x/a_de.txt", "x/a_en.txt", ("x/*_de.txt", "x/*_en.txt")),
        ("news.de-en/de.txt", "news.de-en/en.txt", ("news.de-en/de*", "news.de-en/en*")),
        ("news/a.de", "news/a.en", ("news", None)),
        ("news/de/a.csv", "news/en/a.csv", ("news", None)),
        ("data/de/train/a.txt.gz", "data/en/train/a.txt", ("data/de/train", "data/en/train")),
        ("l10n/de.lproj/a.txt", "l10n/en.lproj/a.txt", ("l10n/de.lproj", "l10n/en.lproj")),
        ("de-DE/a.txt", "en_US/a.txt", ("de-DE", "en_US")),
    ],
)
def test_files_of_equal_names_are_pairs_in_the_languages_of_names(make, source, target, roots):
    make(f"{source} {target}")
    codes = ["deu_Latn", "eng_Latn"]
    files = [source, target]
    if roots[1] is None:  # English is the source of one folder
        files, codes = files[::-1], codes[::-1]
    assert pairs_of(*roots, split=True)[0] == [(*files, *codes)]


def test_a_folder_of_several_languages_pairs_each_with_english(make):
    make("l/de/a.txt l/en/a.txt l/fr/a.txt l/fr/b.txt l/readme.txt")
    found, left_out = pairs_of("l")
    assert [pair[1:] for pair in found] == [
        ("l/de/a.txt", "eng_Latn", "deu_Latn"),
        ("l/fr/a.txt", "eng_Latn", "fra_Latn"),
    ]
    assert {left.path for left in left_out} == {"l/fr/b.txt", "l/readme.txt"}
    found, _ = pairs_of("l", None, ("de", "fr"))
    assert found == [("l/de/a.txt", "l/fr/a.txt", "deu_Latn", "fra_Latn")]


def test_a_file_whose_name_looks_like_a_language_is_of_its_folder(make):
    make("de/cs.txt de/a.txt de/b.txt en/cs.txt en/a.txt en/b.txt")
    assert {pair[2:] for pair in pairs_of("de", "en")[0]} == {("deu_Latn", "eng_Latn")}


def test_files_without_a_partner_are_left_out_with_their_reason(make):
    make("de/a.txt de/only.txt en/a.txt en/b.png en/c.docx en/d.fr.txt")
    (en := pairs_of("de", "en"))
    reasons = {left.path: left.reason for left in en[1]}
    assert set(reasons) == {"de/only.txt", "en/b.png", "en/c.docx", "en/d.fr.txt"}
    assert "--split" in reasons["en/c.docx"]


def test_two_files_of_one_name_are_refused_by_both(make):
    make("de/a.txt de/a.md en/a.csv")
    with pytest.raises(DataError, match=r"de/a\.\w+ and de/a\.\w+ .*en/a\.csv"):
        pairs_of("de", "en", split=True)


def test_equal_endings_decide_between_two_files_of_one_name(make):
    make("de/a.txt de/a.csv en/a.txt en/a.csv")
    assert len(pairs_of("de", "en")[0]) == 2


@pytest.mark.parametrize(
    ("files", "roots", "error", "match"),
    [
        ("x/a.de.txt y/b.en.txt", ("x", "y"), DataError, "--list"),
        ("x/a.de.txt x/b.de.txt", ("x", None), DataError, "--source-language"),
        ("x/a.de.txt y/a.de.txt", ("x", "y"), DataError, "--source-language"),
        ("x/a.de.txt x/b.fr.txt y/a.txt", ("x", "y"), DataError, "x/a.de.txt"),
        ("x/a.de.txt x/y/a.en.txt", ("x", "x/y"), ConfigError, "a.en.txt"),
        ("x/a.png y/a.txt", ("x", "y"), DataError, "x"),
    ],
)
def test_folders_that_are_no_sides_are_refused(make, files, roots, error, match):
    make(files)
    with pytest.raises(error, match=match):
        pairs_of(*roots)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tmx", "<tmx/>"),
        ("a.de.json", '{"a": "b", "c": "d"}'),
        ("a.jsonl", '{"source": "a", "target": "b"}'),
        ("a.strings", '"a" = "b";'),
        ("a.po", 'msgid "a"\nmsgstr "b"\n'),
        ("a.xlf", "<xliff/>"),
        ("a.tsv", "Der Hund schläft.\tThe dog sleeps.\n"),
    ],
)
def test_pairs_in_place_of_a_text_name_the_verb_for_them(make, name, text):
    make(name, text)
    with pytest.raises(DataError, match="interlingua score"):
        refuse_pairs(name, split=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.de.txt", GERMAN), ("a.de", GERMAN), ("a.csv", "text\na\n"), ("a.tsv", "id1\tein Satz\n")],
)
def test_texts_of_one_language_are_not_refused(make, name, text):
    make(name, text)
    refuse_pairs(name, split=False)
