from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.tasks.translation.translations import paired_files, translation_pairs


def names(folder, target=None):
    return {
        key: (pair.name, pair.source, pair.target)
        for key, pair in translation_pairs(folder, target).items()
    }


def test_aligned_languages_are_paired_with_english_or_another(aligned_folder):
    assert names(aligned_folder) == {
        "hin_Deva": ("hin_Deva-eng_Latn", "hin_Deva", "eng_Latn"),
        "ita_Latn": ("ita_Latn-eng_Latn", "ita_Latn", "eng_Latn"),
    }
    assert names(aligned_folder, "it") == {
        "eng_Latn": ("eng_Latn-ita_Latn", "eng_Latn", "ita_Latn"),
        "hin_Deva": ("hin_Deva-ita_Latn", "hin_Deva", "ita_Latn"),
    }
    with pytest.raises(DataError, match=r"deu_Latn.txt.* not found"):
        translation_pairs(aligned_folder, "de")


def test_pairs_are_turned_around_where_the_target_stands_first(tmp_path):
    (tmp_path / "deu-eng.tsv").write_text("Hallo\thello\n")
    (tmp_path / "deu-fra.tsv").write_text("Hallo\tbonjour\n")
    assert set(names(tmp_path)) == {"deu", "deu-fra"}
    turned = translation_pairs(tmp_path, "German")
    assert {key: pair.read() for key, pair in turned.items()} == {
        "eng-deu": (["hello"], ["Hallo"]),
        "fra-deu": (["bonjour"], ["Hallo"]),
    }
    assert names(tmp_path, "German")["eng-deu"] == ("eng-deu", "eng_Latn", "deu_Latn")
    assert translation_pairs(tmp_path / "none") == {}


def test_aligned_files_are_no_pair_files(aligned_folder):
    assert paired_files(aligned_folder) == {}
