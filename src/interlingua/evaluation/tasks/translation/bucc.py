"""BUCC 2018 (Zweigenbaum et al. 2018): mining the translations in two texts.

Two monolingual texts hold some translations of each other, the gold pairs. Pairs are mined by
margin, those above a threshold are extracted, and F1 compares them with the gold. The three
protocols here are not comparable: the threshold is from other data than those it is scored on
(``BuccMargin``), from the same data (``BuccBestF1``), or there is none (``BuccMTEB``).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray

from interlingua.config import AtLeast
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.bucc import (
    TRAINING,
    TRAINING_GOLD,
    BuccFiles,
    BuccPair,
    BuccSplit,
    bucc_files,
    read_bucc_pair,
)
from interlingua.evaluation.examples import PER_SUBSET, choose_examples, cut, wrong_neighbors
from interlingua.evaluation.metrics.retrieval import weighted_scores
from interlingua.evaluation.scores import (
    Example,
    Items,
    SubsetScores,
    TaskResult,
    with_shared_metrics,
)
from interlingua.evaluation.streams import stream_vectors
from interlingua.evaluation.task import Findings, Scored, StreamedTask, Unit
from interlingua.functional.margin import MarginKind
from interlingua.mining.candidates import Candidates, best_both_ways, retrieve
from interlingua.mining.defaults import Retrieval
from interlingua.mining.gold import Extraction, at_threshold, best_threshold, cross_validated
from interlingua.retrieval.topk.exact import exact_topk
from interlingua.runtime.progress import SILENT, Progress

DATASET = "bucc2018_zh_en"


@dataclass(frozen=True, kw_only=True)
class BuccTask(StreamedTask):
    """The common part of the protocols.

    A result has the protocol's own name if all data are the shared task's training data, recognized
    by the number of its gold pairs. For other splits and data, their name is appended; without test
    data, ``bucc_margin`` becomes ``bucc_margin_training``.

    Attributes:
        languages: languages or pairs (``zh``, ``zh-en``) to score; all by default.
        split: training, sample or dev, or test; by default the first of these that has gold.
    """

    folders: ClassVar[Sequence[str]] = ("bucc2018", DATASET, "bucc")
    reader: ClassVar = bucc_files
    expected: ClassVar[str] = "BUCC files (de-en.training.de, .en and .gold, or dev.zh)"
    published: ClassVar[str | None] = DATASET
    uses_test: ClassVar[bool] = False

    split: str | None = None

    def unit(self, key: str, file: Mapping[str, BuccFiles], folder: Path) -> Unit[BuccPair]:
        """Read a language pair."""
        pair = self.read(key, folder)
        return Unit(
            name=key,
            key=f"{key}.{pair.split}",
            languages=pair.languages,
            pairs=len((pair.test or pair.data).gold),
            data=pair,
            contents=pair.contents(),
            sentences=pair.sentences(),
            is_official=pair.is_official(key),
        )

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Run the protocol; keep only the metrics that all language pairs have."""
        # a pair without test data has no "f1"
        found = super().run(encoder, folder, progress)
        found.subsets = with_shared_metrics(found.subsets)
        return found

    def result_name(self, found: Findings) -> str:
        """Return the result's name; for other splits and data, their name is appended."""
        if found.is_official:
            return self.label()
        # the only published data that are recognized by digest are a dev split
        if found.revision:
            return f"{self.name}_dev"
        return f"{self.name}_{found.folder.resolve().name}"

    def paper_members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the language pairs of the shared task's training data."""
        if not found.is_official:
            return {}
        return {f"bucc_{len(found.subsets)}of{len(TRAINING_GOLD)}": found.subsets}

    def embed(self, encoder: CachedEncoder, data: Path) -> None:
        """Embed both sides of the chosen language pairs without mining."""
        folder = self.find(data)
        for name in self.chosen(self.files(folder), folder):
            pair = self.read(name, folder)
            for split in pair.splits():
                for texts, language in zip(self.texts(split), pair.languages, strict=True):
                    _embed(encoder, texts, language)

    def texts(self, split: BuccSplit) -> tuple[Sequence[str], Sequence[str]]:
        """Return the texts to embed of both sides."""
        return split.source.texts, split.target.texts

    def read(self, name: str, folder: Path) -> BuccPair:
        """Read a language pair of a folder.

        Raises:
            DataError: the gold of its split is missing, or a file is broken.
        """
        # only a threshold from training is scored on test; any other is scored on its own split
        return read_bucc_pair(folder, name, self.split, with_test=self.uses_test)

    def source_languages(self, files: Mapping[str, Any]) -> dict[str, str]:
        """Return each language pair -> its first language."""
        return {name: name.partition("-")[0] for name in files}


@dataclass(frozen=True, kw_only=True)
class BuccMargin(BuccTask):
    """LASER's protocol (Artetxe & Schwenk 2019; ``bucc.sh``): threshold from training, F1 on test.

    Equal texts of a side are one text. A pair is dropped after the matching if the text of one side
    occurs more than once, and its gold pair counts as missed. The test gold was published late. If
    it is missing, nothing is held out: ``best_f1`` is F1 at the threshold that is best for the same
    data. The main metric then is ``f1_crossvalidated``, F1 of two halves of the source sentences,
    each with the other's threshold.

    Attributes:
        k: number of neighbors that are scored, and over which the margin averages.
        margin: ratio, distance or absolute (plain cosine).
        retrieval: max, intersection, forward or backward.
        seed: of the two halves.
    """

    name: ClassVar[str] = "bucc_margin"
    main_metric: ClassVar[str] = "f1"
    uses_test: ClassVar[bool] = True

    k: Annotated[int, AtLeast(1)] = 4
    margin: MarginKind = "ratio"
    retrieval: Retrieval = "max"
    seed: int = 1

    def evaluate(
        self, encoder: CachedEncoder, data: Path, *, progress: Progress = SILENT
    ) -> TaskResult:
        """Score an encoder; the main metric is ``f1`` if all language pairs have it."""
        result = super().evaluate(encoder, data, progress=progress)
        if _is_held_out(result.subsets):
            return result
        return replace(result, main_metric="f1_crossvalidated")

    def result_name(self, found: Findings) -> str:
        """Return the result's name; without test data, ``_training`` is appended."""
        if found.is_official and not _is_held_out(found.subsets):
            return f"{self.name}_{TRAINING}"
        return super().result_name(found)

    def score(self, encoder: CachedEncoder, unit: Unit[BuccPair]) -> Scored:
        """Mine a language pair by margin, and compute the best and the cross-validated F1."""
        pair = unit.data
        # the threshold with the best F1 on the split itself
        candidates = self._mine(encoder, pair.languages, pair.data)
        right = _right(candidates, pair.data)
        gold = len(pair.data.gold)
        threshold = best_threshold(candidates.scores, right, gold=gold).threshold
        best = at_threshold(candidates.scores, right, gold=gold, threshold=threshold)
        # two halves of the source sentences at random, equally large; F1 = 2 c / (extracted + gold)
        halves = np.random.default_rng(self.seed).permutation(len(pair.data.source.ids)) % 2
        in_second = int(halves[[source for source, _ in pair.data.gold]].sum())
        of_halves = gold - in_second, in_second
        kept = cross_validated(candidates.scores, right, halves[candidates.x], gold=of_halves)
        crossvalidated = 2 * int(right[kept].sum()) / (int(kept.sum()) + gold)
        scores = {**_best(best), "f1_crossvalidated": crossvalidated}
        if pair.test is None:
            note = (
                f"no gold file of a test split; the threshold {threshold:.4f} was chosen"
                f" on the {pair.split} split"
            )
            return Scored(scores, _items(candidates.take(kept), pair.data), notes=[note])
        # that threshold on the test data
        held_out = self._mine(encoder, pair.languages, pair.test)
        right = _right(held_out, pair.test)
        gold = len(pair.test.gold)
        found = at_threshold(held_out.scores, right, gold=gold, threshold=threshold)
        scores |= {"f1": found.f1, "precision": found.precision, "recall": found.recall}
        items = _items(held_out.take(held_out.scores >= threshold), pair.test)
        note = f"the threshold {threshold:.4f} was chosen on the {pair.split} split"
        return Scored(scores, items, notes=[note])

    def _mine(
        self, encoder: CachedEncoder, languages: tuple[str, str], data: BuccSplit
    ) -> Candidates:
        """Return the retrieved pairs by rows of their texts, without those of repeated texts."""
        rows = []
        vectors = []
        for side, language in zip((data.source, data.target), languages, strict=True):
            # distinct texts in the order of their first rows; -1 marks a repeated text, which takes
            # part in the search and is dropped after it
            counts = Counter(side.texts)
            row_of = {text: row for row, text in enumerate(side.texts)}
            row_of |= {text: -1 for text, count in counts.items() if count > 1}
            vectors.append(_embed(encoder, list(counts), language))
            rows.append(np.array([row_of[text] for text in counts]))
        found = retrieve(*best_both_ways(*vectors, k=self.k, margin=self.margin), self.retrieval)
        x = rows[0][found.x]
        y = rows[1][found.y]
        return Candidates(found.scores, x, y).take((x >= 0) & (y >= 0))


@dataclass(frozen=True, kw_only=True)
class BuccBestF1(BuccTask):
    """The protocol of sentence-transformers' ``bucc2018.py`` (Reimers & Gurevych 2020).

    EMS uses it too.

    One split determines both the threshold and the F1, so nothing is held out. Every id is a
    separate text, and pairs that score below 1 are dropped. The search is exact here; the script's
    is approximate by default, and finds less.

    Attributes:
        k: number of neighbors that are scored, and over which the margin averages.
        least: minimum score of a pair, a ratio margin.
        examples: extracted pairs that are not gold, as in EMS's Table VIII, kept next to the
            result; per language pair, 0 for none.
    """

    name: ClassVar[str] = "bucc_best_f1"
    main_metric: ClassVar[str] = "best_f1"

    k: Annotated[int, AtLeast(1)] = 4
    least: float = 1.0
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def score(self, encoder: CachedEncoder, unit: Unit[BuccPair]) -> Scored:
        """Mine with the best neighbors, and compute F1 at the best threshold of the same data."""
        pair = unit.data
        sides = zip((pair.data.source, pair.data.target), pair.languages, strict=True)
        x, y = (_embed(encoder, side.texts, language) for side, language in sides)
        candidates = retrieve(*best_both_ways(x, y, k=self.k))
        candidates = candidates.take(candidates.scores >= self.least)
        right = _right(candidates, pair.data)
        best = best_threshold(candidates.scores, right, gold=len(pair.data.gold))
        # take the best pairs by their number, and do not compare scores with the threshold, because
        # the threshold may lie between equal scores
        extracted = candidates.take(np.argsort(-candidates.scores, kind="stable")[: best.extracted])
        note = (
            f"the threshold {best.threshold:.4f} was chosen on the {pair.split} split,"
            " which is also scored"
        )
        examples = _not_gold(extracted, pair, self.examples)
        return Scored(_best(best), _items(extracted, pair.data), examples, notes=[note])


@dataclass(frozen=True, kw_only=True)
class BuccMTEB(BuccTask):
    """The protocol of mteb for its task ``BUCC``, MEXMA's Table 1: a search without a threshold.

    The queries are only the sources of gold pairs, the candidates the whole English side. The
    nearest by cosine is scored with F1 over the English ids, weighted by the number of times each
    is gold. mteb's data are the shared task's training data.

    Attributes:
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    name: ClassVar[str] = "bucc_mteb"
    main_metric: ClassVar[str] = "f1"

    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def texts(self, split: BuccSplit) -> tuple[Sequence[str], Sequence[str]]:
        """Return the source texts of the gold pairs, and all target texts."""
        return [split.source.texts[row] for row, _ in split.gold], split.target.texts

    def score(self, encoder: CachedEncoder, unit: Unit[BuccPair]) -> Scored:
        """Find the translation of each gold sentence, and compute the weighted F1."""
        pair = unit.data
        gold = np.array([target for _, target in pair.data.gold])
        queries, candidates = self.texts(pair.data)
        x = _embed(encoder, queries, pair.languages[0])
        y = _embed(encoder, candidates, pair.languages[1])
        nearest = exact_topk(x, y, k=1).indices[:, 0].numpy()
        f1, precision = weighted_scores(nearest, gold)
        right = nearest == gold
        scores = {
            "f1": float(f1.mean()),
            "precision": float(precision.mean()),
            "accuracy": float(right.mean()),
        }
        # wrong_neighbors wants candidate i to be the translation of query i: so the gold candidates
        # precede all candidates
        shown = np.concatenate([gold, np.arange(len(y))])
        examples = wrong_neighbors(
            right,
            nearest + len(gold),
            queries,
            [candidates[row] for row in shown],
            lambda i, j: float(x[i] @ y[shown[j]]),
            languages=pair.languages,
            limit=self.examples,
        )
        return Scored(scores, Items(f1), examples)


def _embed(encoder: CachedEncoder, texts: Sequence[str], language: str) -> Float32[ndarray, "n d"]:
    """Return unit vectors in a file on disk: a side has hundreds of thousands of sentences."""
    encode = functools.partial(encoder.encode, language=language)
    return stream_vectors(encode, texts, normalize=True)


def _right(candidates: Candidates, data: BuccSplit) -> Bool[ndarray, " n"]:
    """Return whether each pair is gold."""
    gold = set(data.gold)
    pairs = zip(candidates.x.tolist(), candidates.y.tolist(), strict=True)
    return np.array([pair in gold for pair in pairs], dtype=bool)


def _items(extracted: Candidates, data: BuccSplit) -> Items:
    """Return the parts of F1 by source sentence, so that encoders can be compared by resampling.

    F1 is 2 c / (extracted + gold). Each source sentence has its part of the numerator as its value,
    and its part of the denominator as its weight.
    """
    count = len(data.source.ids)
    hits = np.bincount(extracted.x[_right(extracted, data)], minlength=count)
    gold = np.bincount([source for source, _ in data.gold], minlength=count)
    return Items(2.0 * hits, None, np.bincount(extracted.x, minlength=count) + 1.0 * gold)


def _not_gold(extracted: Candidates, pair: BuccPair, limit: int) -> tuple[Example, ...]:
    """Return a sample of the extracted pairs that are not gold.

    Each source sentence is extracted once at most.
    """
    sources = pair.data.source.texts
    targets = pair.data.target.texts
    gold = dict(pair.data.gold)
    wrong = extracted.take(~_right(extracted, pair.data))
    found = []
    texts = [sources[row] for row in wrong.x]
    for index in choose_examples(np.ones(len(wrong.x), bool), texts, limit):
        source = int(wrong.x[index])
        target = int(wrong.y[index])
        expected = "(in no gold pair)"
        if source in gold:
            expected = cut(targets[gold[source]])
        found.append(
            Example(
                item=source,
                query=cut(sources[source]),
                expected=expected,
                retrieved=cut(targets[target]),
                expected_score=None,
                retrieved_score=float(wrong.scores[index]),
                languages=pair.languages,
                measure="ratio margin",
            )
        )
    return tuple(found)


def _best(found: Extraction) -> dict[str, float]:
    return {"best_f1": found.f1, "best_precision": found.precision, "best_recall": found.recall}


def _is_held_out(subsets: Sequence[SubsetScores]) -> bool:
    """Return whether test data were scored in all language pairs."""
    return all("f1" in subset.scores for subset in subsets)
