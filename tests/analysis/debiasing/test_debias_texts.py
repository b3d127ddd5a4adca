from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.debiasing.debias_texts import read_language_texts
from interlingua.errors import ConfigError, DataError


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / name.replace("__", ".").replace("_to_", "-")).write_text(
            "\n".join(lines) + "\n", encoding="utf-8"
        )
    return folder


def groups_of(found):
    """Return languages and texts by group, smallest first."""
    named = list(zip(found.languages, found.texts, strict=True))
    return sorted(
        [named[row] for row in np.flatnonzero(found.groups == group)]
        for group in np.unique(found.groups)
    )


def test_files_of_equal_length_are_line_aligned(tmp_path):
    folder = write(tmp_path / "f", de__txt=["eins", "zwei"], en__txt=["one", "two"])
    found = read_language_texts([folder], sentences=10)
    assert groups_of(found) == [
        [("deu_Latn", "eins"), ("eng_Latn", "one")],
        [("deu_Latn", "zwei"), ("eng_Latn", "two")],
    ]


def test_files_of_unequal_length_are_not_aligned(tmp_path):
    folder = write(tmp_path / "f", de__txt=["eins", "zwei", "drei"], en__txt=["one", "two"])
    found = read_language_texts([folder], sentences=10)
    assert len(set(found.groups.tolist())) == len(found.texts)
    assert len(found.texts) == 5


def test_pairs_that_share_a_sentence_are_one_group(tmp_path):
    folder = write(
        tmp_path / "f", de_to_en__tsv=["Hallo\tHello", "Ja\tYes"], fr_to_en__tsv=["Salut\tHello"]
    )
    found = read_language_texts([folder], sentences=10)
    assert sorted(map(len, groups_of(found))) == [2, 3]


def test_single_files_of_pairs_and_of_lines(tmp_path):
    folder = write(
        tmp_path / "f", news__de_to_en__tsv=["Hallo\tHello"], more__fr__txt=["Salut", "Oui"]
    )
    found = read_language_texts([folder / "news.de-en.tsv", folder / "more.fr.txt"], sentences=10)
    assert found.codes == ("deu_Latn", "eng_Latn", "fra_Latn")
    assert len(found.texts) == 4


def test_tables_in_one_language_and_of_pairs(tmp_path):
    tables = {
        "fr.csv": '\ufeffid,text,note\n1,"Bonjour, vous",x\n2,Salut,y\n',
        "pairs.csv": "German,English\nJa,Yes\n",
    }
    for name, content in tables.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    paths = [tmp_path / name for name in tables]
    found = read_language_texts(paths, sentences=10)
    assert sorted(found.texts) == ["Bonjour, vous", "Ja", "Salut", "Yes"]
    assert found.codes == ("deu_Latn", "eng_Latn", "fra_Latn")
    (tmp_path / "de.csv").write_text("x,note\nJa,z\n", encoding="utf-8")
    noted = read_language_texts(
        [tmp_path / "fr.csv", tmp_path / "de.csv"], sentences=10, column="note"
    )
    assert sorted(noted.texts) == ["x", "y", "z"]


def test_a_column_of_what_is_no_table_is_refused(tmp_path):
    folder = write(tmp_path / "f", de__txt=["Ja"], en__txt=["Yes"])
    with pytest.raises(ConfigError, match="column 'text'"):
        read_language_texts([folder], sentences=9, column="text")


def test_prepared_corpus_gives_its_training_pairs(prepared):
    found = read_language_texts([prepared], sentences=20)
    assert len(found.codes) >= 2
    assert len(set(found.groups.tolist())) < len(found.texts)
    assert all(text.strip() for text in found.texts)


def test_sentences_are_drawn_by_seed(tmp_path):
    lines = [f"w{number}" for number in range(200)]
    folder = write(tmp_path / "f", de__txt=lines, en__txt=lines)
    first = read_language_texts([folder], sentences=30)
    assert len(first.texts) == 60
    assert read_language_texts([folder], sentences=30).texts == first.texts
    assert read_language_texts([folder], sentences=30, seed=1).texts != first.texts


def test_languages_are_chosen_in_any_code(tmp_path):
    folder = write(tmp_path / "f", de__txt=["a"], en__txt=["b"], fr__txt=["c"])
    assert read_language_texts([folder], sentences=9, languages=["German", "fra"]).codes == (
        "deu_Latn",
        "fra_Latn",
    )
    with pytest.raises(DataError, match="jpn_Jpan"):
        read_language_texts([folder], sentences=9, languages=["ja", "de"])


def test_one_language_or_no_texts_are_refused(tmp_path):
    folder = write(tmp_path / "f", de__txt=["a"])
    with pytest.raises(DataError, match="at least 2"):
        read_language_texts([folder], sentences=9)
    with pytest.raises(DataError, match="no texts found"):
        read_language_texts([write(tmp_path / "empty")], sentences=9)
    with pytest.raises(DataError, match="file not found"):
        read_language_texts([tmp_path / "missing.de-en.tsv"], sentences=9)


def test_blank_lines_keep_the_alignment(tmp_path):
    folder = write(tmp_path / "f", de__txt=["", "zwei", "drei"], en__txt=["one", "", "three"])
    found = read_language_texts([folder], sentences=10)
    assert groups_of(found) == [
        [("deu_Latn", "drei"), ("eng_Latn", "three")],
        [("deu_Latn", "zwei")],
        [("eng_Latn", "one")],
    ]


def test_pairs_with_one_wanted_side_are_left_out(tmp_path):
    folder = write(tmp_path / "f", de_to_en__tsv=["Hallo\tHello"], fr_to_en__tsv=["Oui\tYes"])
    found = read_language_texts([folder], sentences=10, languages=["de", "en"])
    assert sorted(found.texts) == ["Hallo", "Hello"]
