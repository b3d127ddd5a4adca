from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError
from interlingua.mining.align import Aligner
from interlingua.mining.api import align, encode_with, mine, score
from interlingua.mining.pipeline import MineConfig, TextFile, mine_files
from interlingua.mining.score import PairScorer, ScoreConfig
from tests.mining.invented import corpora, embed, write_lines
from tests.mining.test_align import documents
from tests.mining.test_score import bitext
from tests.mining.words import embed as embed_words
from tests.mining.words import encode as encode_words


@pytest.mark.parametrize("retrieval", ["max", "intersection", "forward", "backward"])
def test_mine_finds_what_the_files_give(tmp_path, retrieval):
    sources, targets, _ = corpora(30, 40)
    sources = [sources[3], "", *sources]  # equal texts count once, blank ones not at all
    files = [TextFile(write_lines(tmp_path / name, texts), code, encode=embed)
             for name, texts, code in (("a.de", sources, "deu_Latn"), ("a.en", targets, "eng_Latn"))]  # fmt: skip
    mined = mine_files(*files, MineConfig(retrieval=retrieval, k=3), tmp_path / "work", model="m")
    found = mine(lambda texts: 3 * embed(texts), sources, targets, retrieval=retrieval, k=3)
    expected = [(mined.x.texts[pair["x"]], mined.y.texts[pair["y"]]) for pair in mined.pairs]
    assert sorted((pair.source, pair.target) for pair in found) == sorted(expected)
    np.testing.assert_allclose([pair.score for pair in found], mined.pairs["score"], rtol=1e-5)
    for pair in found:
        assert pair.source_row == sources.index(pair.source)
        assert targets[pair.target_row] == pair.target


def test_a_threshold_cuts():
    sources, targets, pairs = corpora(30, 40)
    found = mine(embed, sources, targets, threshold=1.4)
    assert {(pair.source_row, pair.target_row) for pair in found} <= set(pairs)
    assert min(pair.score for pair in found) >= 1.4
    assert len(mine(embed, sources, targets, margin="absolute")) > len(found)


def test_nothing_to_mine():
    with pytest.raises(DataError, match="holds no sentence; there is nothing to mine"):
        mine(embed, ["a"], ["", " "])


def test_scores_are_those_of_the_stream():
    texts = bitext(50)
    config = ScoreConfig(margin="distance", k=2, window=20)
    expected = [value for block in PairScorer(encode_words, config).score(texts) for value in block.scores.tolist()]
    pairs = ((pair.source, pair.target) for pair in texts)
    found = score(embed_words, pairs, margin="distance", k=2, window=20)
    assert list(found) == pytest.approx(expected, abs=1e-6)


def test_links_are_those_of_the_aligner():
    source, target, _ = documents(1, 30)
    found = align(embed_words, source, target)
    expected = Aligner(encode_words).align(source, target).links
    assert [link[:2] for link in found] == [link[:2] for link in expected]
    assert {len(link.source) + len(link.target) for link in align(embed_words, source, target, max_sentences=2)} <= {
        1,
        2,
    }


def test_an_encoder_is_given_prompt_and_language(word_vocabulary):
    encoder = Encoder.from_scratch(BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size), word_vocabulary)
    texts = ["de1 de2", "de3"]
    found = encode_with(encoder, "ru1 ")(texts, language="de")
    np.testing.assert_allclose(found, encoder.encode(texts, prompt="ru1 ", language="de"), atol=1e-6)
    given = []

    class Other:
        """As other libraries' encoders: they know no language."""

        def encode(self, texts, **how):
            given.append(how)
            return np.full((len(texts), 2), 5.0)

    np.testing.assert_allclose(np.linalg.norm(encode_with(Other())(texts), axis=1), 1)
    encode_with(Other(), "q: ")(texts)
    assert given == [{}, {"prompt": "q: "}]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mine(embed, ["a", None], ["b"]), r"source: row 1 .* missing value"),
        (lambda: mine(embed, ["a"], {"text": ["b"]}), "target: .* got a dict"),
        (lambda: mine(embed, "a", ["b"]), "source: .* got one string"),
        (lambda: align(embed, ["a"], ["b", float("nan")]), r"target: row 1 .* missing value"),
        (lambda: list(score(embed, [("a", "b"), ("a", None)])), r"target: row 1 .* missing value"),
        (lambda: list(score(embed, [("a", "b", "c")])), "row 0 .* expected a source and a target"),
        (lambda: list(score(embed, ["ab"])), "row 0 .* expected a source and a target"),
        (lambda: score(embed, {"a": "b"}), "pairs: .* got a dict"),
    ],
)
def test_what_is_no_text_is_one_error_with_its_row(call, message):
    with pytest.raises((ConfigError, DataError), match=message):
        call()


def test_the_encoder_comes_first_and_may_be_a_folder(word_vocabulary, tmp_path):
    encoder = Encoder.from_scratch(BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size), word_vocabulary)
    encoder.save(tmp_path / "m")
    texts = [f"de{number} de{number + 1}" for number in range(6)]
    assert mine(tmp_path / "m", texts, texts) == mine(encoder, texts, texts)
    for call in (
        lambda: mine(texts, texts, encoder),
        lambda: score(texts, encoder),
        lambda: align(texts, texts, embed),
    ):
        with pytest.raises(ConfigError, match=r"mine\(encoder, source, target\)"):
            call()
