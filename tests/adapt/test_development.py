"""Development data: what is read, and scores worked out by hand from given vectors."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.adapt.development import (
    Development,
    DevelopmentScores,
    read_development,
    read_similarity,
    read_translations,
)
from interlingua.errors import DataError, LanguageAbsentError


class Table:
    """An encoder that looks vectors up by text."""

    dim = 2

    def __init__(self, **vectors):
        self.vectors = vectors
        self.asked = []

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        self.asked += [(text, prompt, language) for text in texts]
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_precision_is_the_mean_of_both_directions(tmp_path):
    file = write(tmp_path / "de-en.tsv", "eins\tone", "zwei\ttwo")
    # Both German vectors are nearest to "one"; "one" is nearest to "eins", "two" to "zwei".
    encoder = Table(eins=(1, 0), zwei=(0.8, 0.6), one=(1, 0.1), two=(0, 1))
    scores = read_development([file], []).measure(encoder)
    assert scores.retrieval == {"de-en.tsv": 75.0}
    assert scores.mean_retrieval == 75.0
    assert scores.mean_similarity is None


def test_similarity_is_spearman_of_cosines(tmp_path):
    file = write(tmp_path / "en.dev.tsv", "5.0\ta\tb", "2.5\ta\tc", "0.0\ta\td")
    encoder = Table(a=(1, 0), b=(1, 0), c=(0, 1), d=(1, 1))
    # Cosines 1, 0, 0.71 against 5, 2.5, 0: ranks 3 1 2 and 3 2 1, so rho = 1 - 6 * 2 / 24.
    scores = read_development([], [file]).measure(encoder)
    assert scores.similarity == {"en.dev.tsv": pytest.approx(50.0)}


def test_each_text_is_embedded_once_with_the_prompt(tmp_path):
    for code in ("de", "fr"):
        write(tmp_path / "set" / f"{code}.txt", f"{code} 1", f"{code} 2")
    write(tmp_path / "set" / "en.txt", "en 1", "en 2")
    vectors = {f"{code} {n}": (n, 1) for code in ("de", "fr", "en") for n in (1, 2)}
    encoder = Table(**vectors)
    scores = read_development([tmp_path / "set"], []).measure(encoder, prompt="query: ")
    assert set(scores.retrieval) == {"set: de-en", "set: fr-en"}
    assert len(encoder.asked) == 6
    assert ("fr 2", "query: ", "fra_Latn") in encoder.asked


def test_folders_of_pairs_and_of_lines_are_read(tmp_path):
    write(tmp_path / "pairs" / "deu-eng.tsv", "eins\tone", "zwei\ttwo", "drei\tthree")
    (one,) = read_translations(tmp_path / "pairs", max_pairs=2)
    assert one.languages == ("deu_Latn", "eng_Latn")
    assert (one.sources, one.targets) == (["eins", "drei"], ["one", "three"])
    write(tmp_path / "lines" / "deu_Latn.txt", "eins")
    write(tmp_path / "lines" / "fra_Latn.txt", "un")
    (one,) = read_translations(tmp_path / "lines", pivot="fra_Latn", languages=["de"])
    assert (one.languages, one.targets) == (("deu_Latn", "fra_Latn"), ["un"])
    with pytest.raises(LanguageAbsentError, match="spa"):
        read_translations(tmp_path / "pairs", languages=["spa"])


def test_a_bitext_of_several_languages_is_several_sets(tmp_path):
    rows = ['{"de": "eins", "en": "one"}', '{"fr": "un", "en": "one"}']
    path = write(tmp_path / "mixed.jsonl", *(f'{{"translation": {row}}}' for row in rows))
    assert [one.name for one in read_translations(path)] == [
        "mixed.jsonl: deu_Latn-eng_Latn",
        "mixed.jsonl: fra_Latn-eng_Latn",
    ]


def test_two_sets_of_one_name_are_an_error(tmp_path):
    files = [write(tmp_path / part / "de-en.tsv", "eins\tone") for part in "ab"]
    with pytest.raises(DataError, match=r"'de-en\.tsv'"):
        read_development(files, [])


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(DataError, match="missing"):
        read_translations(tmp_path / "missing.de-en.tsv")
    with pytest.raises(DataError, match="missing"):
        read_similarity(tmp_path / "missing.tsv")


def test_no_data_has_no_means():
    assert Development().measure(Table()) == DevelopmentScores({}, {})
