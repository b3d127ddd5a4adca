"""Learning and using a calibration in one work folder embed each text once."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import interlingua
from interlingua.errors import ConfigError
from interlingua.evaluation.kept_vectors import kept_vectors
from tests.mining.invented import corpora, embed, sentence, text, write_lines

LANGUAGES = {"source_language": "de", "target_language": "en"}


class CountingEncoder:
    """An encoder that counts how often it embeds each text, and each text of a language."""

    def __init__(self):
        self.texts = Counter()
        self.of_language = Counter()

    def __call__(self, texts, *, language=None):
        self.texts.update(texts)
        self.of_language.update((language, one) for one in texts)
        return embed(texts)


@pytest.fixture
def encoder():
    return CountingEncoder()


def pairs_of(count, seed):
    draw = random.Random(seed)
    return [(text(one, "de"), text(one, "en")) for one in (sentence(draw) for _ in range(count))]


def write_held_out(path, count=200):
    return write_lines(path, [f"{a}\t{b}" for a, b in pairs_of(count, seed=5)])


@pytest.mark.parametrize("order", [("calibrate", "mine"), ("mine", "calibrate", "mine")])
def test_calibrate_and_mine_share_a_work_folder(tmp_path, encoder, order):
    sources, targets, _ = corpora(80, 200)
    files = (write_lines(tmp_path / "a.de", sources), write_lines(tmp_path / "a.en", targets))
    held_out = write_held_out(tmp_path / "held.de-en.tsv")
    options = {"work": tmp_path / "work"}
    for verb in order:
        if verb == "calibrate":
            output = tmp_path / "c.json"
            interlingua.calibrate(encoder, *files, output=output, parallel=held_out, **options)
        else:
            interlingua.mine(encoder, *files, output=tmp_path / "p.tsv", **options)
    assert encoder.texts.keys() > {*sources, *targets}
    assert set(encoder.texts.values()) == {1}
    interlingua.mine(embed, *files, output=tmp_path / "q.tsv")
    assert (tmp_path / "p.tsv").read_bytes() == (tmp_path / "q.tsv").read_bytes()


def test_other_held_out_texts_replace_the_first(tmp_path, encoder):
    sources, targets, _ = corpora(80, 200)
    files = (write_lines(tmp_path / "a.de", sources), write_lines(tmp_path / "a.en", targets))
    held_out = tmp_path / "held.de-en.tsv"
    found = []
    for count in (200, 300, 200):
        write_held_out(held_out, count)
        learned = interlingua.calibrate(
            encoder,
            *files,
            output=tmp_path / f"{len(found)}.json",
            parallel=held_out,
            work=tmp_path / "work",
        )
        found.append(learned.calibration)
    assert {encoder.texts[one] for one in [*sources, *targets]} == {1}
    assert found[0] == found[2] != found[1]


def test_score_learns_and_scores_with_one_work_folder(tmp_path, encoder):
    pairs = pairs_of(300, seed=1)
    wrong = [(one[0], two[1]) for one, two in zip(pairs[:100], pairs[7:107], strict=True)]
    bitext = write_lines(tmp_path / "a.de-en.tsv", [f"{a}\t{b}" for a, b in [*pairs, *wrong]])
    held_out = write_held_out(tmp_path / "held.de-en.tsv")
    shared = {"window": 50, "work": tmp_path / "work"}
    interlingua.score(encoder, bitext, learn=tmp_path / "c.json", parallel=held_out, **shared)
    count = len(encoder.texts)
    options = {"calibration": tmp_path / "c.json", "precision": 0.9}
    found = list(interlingua.score(encoder, bitext, **options, **shared))
    # Learning replaces some targets, which are embedded now.
    assert len(encoder.texts) < 1.1 * count
    assert set(encoder.of_language.values()) == {1}
    assert found == list(interlingua.score(encoder, bitext, window=50, **options))
    assert 200 < len(found) < 400


def test_a_work_folder_of_a_score_holds_nothing_of_others(tmp_path, encoder):
    (tmp_path / "work" / "x").mkdir(parents=True)
    (tmp_path / "work" / "x" / "notes.txt").write_text("precious")
    with pytest.raises(ConfigError, match="--work"):
        list(interlingua.score(encoder, [("de1", "en1")], work=tmp_path / "work"))


def test_vectors_of_another_prompt_are_not_used(tmp_path, encoder):
    pairs = pairs_of(30, seed=1)
    for prompt in (None, "query: ", None):
        list(interlingua.score(encoder, pairs, work=tmp_path / "work", prompt=prompt))
    assert set(encoder.texts.values()) == {1}
    assert sum(one.startswith("query: ") for one in encoder.texts) * 2 == len(encoder.texts)


def test_stored_vectors_are_those_of_the_encoder(tmp_path, encoder):
    texts = ["de1 de2", "en3", "de1 de2", ""]
    for _ in range(2):
        with kept_vectors(encoder, tmp_path, "model") as keeping:
            assert (keeping(texts, language="deu_Latn") == embed(texts)).all()
            assert keeping([], language="deu_Latn").shape == (0, embed(texts).shape[1])
    assert set(encoder.texts.values()) == {1}
    with kept_vectors(encoder, tmp_path, "other model") as keeping:
        keeping(texts[:1], language="deu_Latn")
        keeping(texts[:1], language="eng_Latn")
    assert encoder.texts[texts[0]] == 3
