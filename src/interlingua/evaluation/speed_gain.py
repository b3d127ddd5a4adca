"""Gain and cost of a faster encoder: texts a second, and translations no longer found."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.formats.evaluation_sets import pair_files, read_pair_file
from interlingua.encoder.protocol import TextEncoder
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.validation import spread_pairs
from interlingua.report.tables import Table


class Found(NamedTuple):
    """The share of translations that each encoder finds, mean of both directions."""

    pairs: int
    slow: float
    fast: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Against:
    """A fast encoder compared with a slow one on the same texts."""

    found: dict[str, Found]
    """Findings by language pair, ``deu-eng``."""
    texts: int
    slow_seconds: float
    """Processor time for the texts, all threads together."""
    fast_seconds: float
    """Processor time of the fast encoder for the same texts."""

    @property
    def speed(self) -> float:
        """The ratio of texts embedded per second of processor time, fast to slow."""
        return self.slow_seconds / max(self.fast_seconds, 1e-9)

    @property
    def slow(self) -> float:
        """The slow encoder's mean share of translations found."""
        return float(np.mean([found.slow for found in self.found.values()]))

    @property
    def fast(self) -> float:
        """The fast encoder's mean share of translations found."""
        return float(np.mean([found.fast for found in self.found.values()]))

    def lines(self) -> Iterator[str]:
        """Yield readable lines: one per language pair, the means, the speed."""
        rows = []
        for name, found in self.found.items():
            slow, fast = f"{100 * found.slow:.1f}", f"{100 * found.fast:.1f}"
            rows.append([name, str(found.pairs), slow, fast])
        rows.append(["mean", "", f"{100 * self.slow:.1f}", f"{100 * self.fast:.1f}"])
        head = ["P@1, mean of both directions", "pairs", "slow", "fast"]
        yield from Table("", head, rows).text()
        yield (
            f"{self.speed:,.0f} times as many texts per second:"
            f" {self.texts / max(self.fast_seconds, 1e-9):,.0f} and"
            f" {self.texts / max(self.slow_seconds, 1e-9):,.0f} per second on one core;"
            f" {100 * (self.slow - self.fast):.1f} points of P@1 lost"
        )


def against(
    slow: TextEncoder,
    fast: TextEncoder,
    folder: Path,
    *,
    prompt: str | None = None,
    languages: Sequence[str] = (),
    max_pairs: int = 200,
) -> Against:
    """Compare two encoders at finding translations among the pairs of each file, by cosine.

    Args:
        slow: the one to be replaced.
        fast: the one to replace it.
        folder: ``<a>-<b>.tsv`` files.
        prompt: of the slow one.
        languages: only files with one of these source languages, spelled as in the files' names;
            default: all.
        max_pairs: pairs taken from each file, evenly spread.

    Raises:
        DataError: there are no such files, or they are broken.
    """
    files = [
        file for file in pair_files(folder) if not languages or file.source_language in languages
    ]
    if not files:
        raise DataError(
            "no <a>-<b>.tsv files found for the comparison; hold out pairs when you prepare the"
            " corpus",
            path=folder,
        )
    found: dict[str, Found] = {}
    slow_seconds = 0.0
    fast_seconds = 0.0
    texts = 0
    for file in files:
        sentences = spread_pairs(*read_pair_file(file), max_pairs)
        pairs = len(sentences[0])
        codes = [full_code(code) for code in (file.source_language, file.target_language)]
        slow_share, seconds = _find_translations(slow, sentences, codes, prompt)
        slow_seconds += seconds
        # the prompt is only for the slow encoder
        fast_share, seconds = _find_translations(fast, sentences, codes, None)
        fast_seconds += seconds
        texts += 2 * pairs
        found[file.name] = Found(pairs, slow_share, fast_share)
    return Against(found=found, texts=texts, slow_seconds=slow_seconds, fast_seconds=fast_seconds)


def _find_translations(
    encoder: TextEncoder, sides: Sequence[Sequence[str]], codes: Sequence[str], prompt: str | None
) -> tuple[float, float]:
    """Compute P@1 as the mean of both directions, and the processor seconds of embedding."""
    made: list[Float32[ndarray, "n d"]] = []
    seconds = 0.0
    for side, code in zip(sides, codes, strict=True):
        # processor time and not wall time: it does not depend on how many threads an encoder uses
        started = time.process_time()
        made.append(encoder.encode(side, prompt=prompt, language=code))
        seconds += time.process_time() - started
    shares = [is_right(nearest).mean() for nearest in nearest_both_ways(*made)]
    return float(np.mean(shares)), seconds
