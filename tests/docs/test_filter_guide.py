"""docs/how-to/filter-and-train.md: its commands run in the order of the page, and wrong pairs reach
no split."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interlingua.corpus.formats.bitext import TextPair, write_pairs
from interlingua.corpus.manifest import Manifest
from tests.docs.markdown import follow
from tests.mining.test_score import bitext
from tests.mining.test_score_learning import is_right

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "filter-and-train.md"
WORDS = Path(__file__).resolve().parents[1] / "mining" / "words.py"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filter")
    shutil.copy(WORDS, folder / "guide_words.py")
    write_pairs(bitext(400, wrong=0.4, repeated=0), folder / "noisy.de-en.tsv")
    write_pairs(bitext(100, seed=7, wrong=0, repeated=0), folder / "trusted.de-en.tsv")
    return folder


def test_wrong_pairs_are_not_held_out(workplace):
    instead = {"score mini": "score guide_words:embed --backend function"}
    assert len(follow(PAGE, workplace, instead=instead)) == 3
    manifest = Manifest.load(workplace / "prepared")
    # Checks reject most of the wrong pairs, and the probability the others.
    assert len((workplace / "scored.de-en.tsv").read_text(encoding="utf-8").splitlines()) < 300
    assert manifest.sources[0].dropped.get("below_min_score", 0) < 250
    assert manifest.sources[1].dropped.get("below_min_score", 0) == 0
    for name in ("heldout", "valid_text"):
        lines = (
            (workplace / "prepared" / name / "deu-eng.tsv").read_text(encoding="utf-8").splitlines()
        )
        assert len(lines) == 10
        assert all(is_right(TextPair(*line.split("\t"), "deu_Latn", "eng_Latn")) for line in lines)
