from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.errors import DataError
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
    found = mine(sources, targets, lambda texts: 3 * embed(texts), retrieval=retrieval, k=3)
    expected = [(mined.x.texts[pair["x"]], mined.y.texts[pair["y"]]) for pair in mined.pairs]
    assert sorted((pair.source, pair.target) for pair in found) == sorted(expected)
    np.testing.assert_allclose([pair.score for pair in found], mined.pairs["score"], rtol=1e-5)
    for pair in found:
        assert pair.source_row == sources.index(pair.source)
        assert targets[pair.target_row] == pair.target


def test_a_threshold_cuts():
    sources, targets, pairs = corpora(30, 40)
    found = mine(sources, targets, embed, threshold=1.4)
    assert {(pair.source_row, pair.target_row) for pair in found} <= set(pairs)
    assert min(pair.score for pair in found) >= 1.4
    assert len(mine(sources, targets, embed, margin="absolute")) > len(found)


def test_nothing_to_mine():
    with pytest.raises(DataError, match="holds no sentence; there is nothing to mine"):
        mine(["a"], ["", " "], embed)


def test_scores_are_those_of_the_stream():
    texts = bitext(50)
    config = ScoreConfig(margin="distance", k=2, window=20)
    expected = [value for block in PairScorer(encode_words, config).score(texts) for value in block.scores.tolist()]
    pairs = ((pair.source, pair.target) for pair in texts)
    found = score(pairs, embed_words, margin="distance", k=2, window=20)
    assert list(found) == pytest.approx(expected, abs=1e-6)


def test_links_are_those_of_the_aligner():
    source, target, _ = documents(1, 30)
    found = align(source, target, embed_words)
    expected = Aligner(encode_words).align(source, target).links
    assert [link[:2] for link in found] == [link[:2] for link in expected]
    assert {len(link.source) + len(link.target) for link in align(source, target, embed_words, max_sentences=2)} <= {
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
