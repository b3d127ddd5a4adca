"""Two sides of invented texts in files, and what is mined from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interlingua.config.options import option
from interlingua.mining import pipeline
from interlingua.mining.candidates import FOUND
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.pipeline import Mined, TextFile
from interlingua.mining.texts import build_side
from interlingua.mining.work_folder import at_work
from interlingua.runtime.progress import SILENT
from interlingua.verbs.mine import MineOptions
from tests.mining.invented import corpora, embed, write_lines


def sides(folder, shared=30, alone=40):
    """Write two sides to ``a.de`` and ``a.en``, and return the pairs of translations."""
    sources, targets, pairs = corpora(shared, alone)
    source = TextFile(write_lines(folder / "a.de", sources), "deu_Latn", encode=embed)
    target = TextFile(write_lines(folder / "a.en", targets), "eng_Latn", encode=embed)
    return source, target, pairs


def write_gold(path, pairs):
    """Write a file of right pairs, by the numbers of their lines from 1."""
    return write_lines(path, [f"{a + 1}\t{b + 1}" for a, b in pairs])


def mine_files(source, target, config, folder, *, shard=None, **options):
    """Return the result of ``pipeline.mine_files`` in a work folder."""
    with at_work(folder, shard) as work:
        return pipeline.mine_files(source, target, config, work, shard=shard, **options)


@dataclass(frozen=True)
class Search(PairSearch):
    """A search with the choices of ``mine``, and on any device."""

    approximate: str | None = option(None, "See ``mine``.")
    laser: bool = option(False, "See ``mine``.")
    device: str = option("cpu", "Of the search.")
    approximation = MineOptions.approximation
    is_like_laser = MineOptions.is_like_laser

    @property
    def search_device(self):
        return self.device


def mine(source, target, work, *, model="m", shard=None, progress=SILENT, **options):
    """Return the result of ``mine_files`` with these options of ``Search``."""
    config = Search(**options)
    return mine_files(source, target, config, work, model=model, shard=shard, progress=progress)


def as_pairs(mined):
    """Return the indices of the texts of all pairs."""
    return list(zip(mined.pairs["x"].tolist(), mined.pairs["y"].tolist(), strict=True))


def rows_of(path):
    """Return the cells of a file of TSV."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def mined_lines(folder, source, target, scores):
    """Return lines of two sides as mined pairs: line 1 with line 1, and so on."""
    x, y = (
        build_side(folder / name, lambda lines=lines: lines)
        for name, lines in (("x", source), ("y", target))
    )
    pairs = np.zeros(len(scores), FOUND)
    pairs["score"], pairs["x"], pairs["y"] = scores, range(len(scores)), range(len(scores))
    return Mined(x, y, pairs, [f"{len(source)} lines"])
