"""BUCC 2018 (Zweigenbaum et al. 2018): finding the translations in two texts. Three protocols, not comparable."""

from __future__ import annotations

import abc
import functools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray

from interlingua.corpus.bucc import BuccFiles, BuccSplit, bucc_files, read_bucc
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.examples import PER_SUBSET, wrong_neighbours
from interlingua.evaluation.metrics.retrieval import weighted_scores
from interlingua.evaluation.streams import stream_vectors
from interlingua.evaluation.task import (
    Embeds,
    Example,
    Items,
    Progress,
    SubsetScores,
    TaskResult,
    check_choice,
    options,
    silent,
)
from interlingua.evaluation.tasks.folders import choose_languages, content_sha256, find_folder, full_code, recognise
from interlingua.evaluation.tasks.groups import grouped
from interlingua.functional.margin import MARGINS, Margin
from interlingua.mining.candidates import Candidates, Retrieval, best_both_ways, retrieve
from interlingua.mining.gold import Extraction, at_threshold, best_threshold, cross_validated
from interlingua.search.topk.exact import exact_topk

DATASET = "bucc2018_zh_en"
TRAINING = "training"
TEST = "test"
TRAINING_GOLD = {"de-en": 9580, "fr-en": 9086, "ru-en": 14435, "zh-en": 1899}
"""Gold pairs of the shared task's training data."""
_TUNING = (TRAINING, "sample", "dev", TEST)


class BuccPair(NamedTuple):
    """A language pair: the split to score or to find a threshold on, and the test data, where their gold is there."""

    languages: tuple[str, str]
    split: str
    data: BuccSplit
    test: BuccSplit | None

    def sentences(self) -> int:
        """On both sides of all that is read."""
        return sum(len(one.source.ids) + len(one.target.ids) for one in (self.data, self.test) if one is not None)

    def is_official(self, name: str) -> bool:
        """Whether it is the shared task's training data of that name."""
        return self.split == TRAINING and len(self.data.gold) == TRAINING_GOLD.get(name)

    def digest(self) -> str:
        """Of all texts and gold pairs."""
        return content_sha256(
            side
            for one in (self.data, self.test)
            if one is not None
            for side in (*one.source, *one.target, [f"{a} {b}" for a, b in one.gold])
        )


class _Found(NamedTuple):
    """What a protocol says of a pair."""

    scores: dict[str, float]
    notes: list[str]
    items: Items | None = None
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BuccTask(abc.ABC):
    """What the protocols share.

    A result stands under the protocol's own name where all is the shared task's training data, recognised by the
    number of its gold pairs. Other splits and data put their name behind it; without test
    data ``bucc_margin`` is ``bucc_margin_training``.

    Attributes:
        languages: languages or pairs (``zh``, ``zh-en``) to score; all by default.
        split: training, sample or dev, or test; by default the first of these that has gold.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str]
    folders: ClassVar[Sequence[str]] = ("bucc2018", DATASET, "bucc")
    expected: ClassVar[str] = "BUCC files (de-en.training.de, .en and .gold, or dev.zh)"
    uses_test: ClassVar[bool] = False

    languages: Sequence[str] | None = None
    split: str | None = None

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, self.files, self.expected)
        chosen = self._chosen(folder)
        subsets = []
        notes = []
        digests = {}
        official = []
        done = 0
        items = {}
        examples = {}
        for number, name in enumerate(chosen, 1):
            pair = self.read(name, folder)
            found = self.score(encoder, pair)
            gold = len((pair.test or pair.data).gold)
            subsets.append(SubsetScores(name=name, languages=pair.languages, pairs=gold, scores=found.scores))
            notes += [f"{name}: {note}" for note in found.notes]
            if found.items is not None:
                items[name], examples[name] = found.items, found.examples
            digests[f"{name}.{pair.split}"] = pair.digest()
            official.append(pair.is_official(name))
            done += pair.sentences()
            progress(name, done, done * len(chosen) // number)
        subsets = _with_shared_metrics(subsets)
        revision = recognise(DATASET, digests)
        tail = self.own_tail(subsets) if all(official) else "_dev" if revision else f"_{folder.resolve().name}"
        return TaskResult(
            task=self.name + tail,
            version=self.version,
            main_metric=self.shown(subsets),
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets),
            notes=tuple(notes),
            items=items,
            examples=examples,
            seconds=time.perf_counter() - start,
            **grouped(_members(subsets, all(official))),
            **options(self),
        )

    def files(self, folder: Path) -> dict[str, dict[str, BuccFiles]]:
        """The splits in a folder by language pair."""
        return bucc_files(folder)

    def embed(self, encoder: Embeds, data: Path) -> None:
        """See ``evaluation.parts``; nothing is mined."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        for pair in (self.read(name, folder) for name in self._chosen(folder)):
            for split in filter(None, (pair.data, pair.test)):
                for texts, language in zip(self.texts(split), pair.languages, strict=True):
                    _embed(encoder, texts, language)

    def texts(self, split: BuccSplit) -> tuple[Sequence[str], Sequence[str]]:
        """What is embedded of both sides."""
        return split.source.texts, split.target.texts

    @abc.abstractmethod
    def score(self, encoder: Embeds, pair: BuccPair) -> _Found:
        """The protocol, on one language pair."""

    def shown(self, subsets: Sequence[SubsetScores]) -> str:
        """The metric a table of these shows."""
        return self.main_metric

    def own_tail(self, subsets: Sequence[SubsetScores]) -> str:
        """What stands behind the protocol's name on the shared task's data."""
        return ""

    def read(self, name: str, folder: Path) -> BuccPair:
        """A language pair of a folder.

        Raises:
            DataError: the gold of its split is not here, or a file is broken.
        """
        files = self.files(folder)[name]
        with_gold = [split for split, one in files.items() if one.gold.is_file()]
        split = next((split for split in ([self.split] if self.split else _TUNING) if split in with_gold), None)
        if split is None:
            wanted = f"the split {self.split!r}" if self.split else "any split"
            there = ", ".join(with_gold) or "none"
            raise DataError(f"no gold file of {wanted} of {name}; splits that have one: {there}", path=folder)
        first, second = map(full_code, name.split("-"))
        test = read_bucc(files[TEST]) if self.uses_test and split == TRAINING and TEST in with_gold else None
        return BuccPair((first, second), split, read_bucc(files[split]), test)

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        return self._chosen(find_folder(data, self.folders, self.files, self.expected))

    def _chosen(self, folder: Path) -> list[str]:
        sources = {name: name.partition("-")[0] for name in self.files(folder)}
        return choose_languages(self.languages, sources, {}, folder)


@dataclass(frozen=True, kw_only=True, slots=True)
class BuccMargin(BuccTask):
    """LASER's protocol (Artetxe & Schwenk 2019; ``bucc.sh``): a threshold from the training gold, F1 on the test data.

    Equal texts of a side are one text; a pair of which a side's text stands there more than once is dropped after the
    matching, and its gold pair counts as missed. Where the test gold, which was published late, is not there, nothing
    was held out: then ``best_f1`` is F1 at the threshold that is best for the very same data, and
    ``f1_crossvalidated``, the main metric, that of two halves of the source sentences, each with the other's threshold.

    Attributes:
        k: neighbours scored, and averaged over in the margin.
        margin: ratio, distance or absolute (plain cosine).
        retrieval: max, intersection, forward or backward.
        seed: of the two halves.
    """

    name: ClassVar[str] = "bucc_margin"
    main_metric: ClassVar[str] = "f1"
    uses_test: ClassVar[bool] = True

    k: int = 4
    margin: Margin = "ratio"
    retrieval: Retrieval = "max"
    seed: int = 1

    def __post_init__(self) -> None:
        check_choice("margin", self.margin, MARGINS)
        check_choice("retrieval", self.retrieval, get_args(Retrieval))
        check_k(self.k)

    def shown(self, subsets: Sequence[SubsetScores]) -> str:
        """``f1`` where all pairs have it."""
        return "f1" if all("f1" in subset.scores for subset in subsets) else "f1_crossvalidated"

    def own_tail(self, subsets: Sequence[SubsetScores]) -> str:
        """Without test data it is another protocol."""
        return "" if self.shown(subsets) == "f1" else f"_{TRAINING}"

    def score(self, encoder: Embeds, pair: BuccPair) -> _Found:
        """See ``BuccTask.score``."""
        candidates = self._mine(encoder, pair.languages, pair.data)
        right = _right(candidates, pair.data)
        gold = len(pair.data.gold)
        threshold = best_threshold(candidates.scores, right, gold=gold).threshold
        best = at_threshold(candidates.scores, right, gold=gold, threshold=threshold)
        halves = np.random.default_rng(self.seed).permutation(len(pair.data.source.ids)) % 2
        in_second = int(halves[[source for source, _ in pair.data.gold]].sum())
        of_halves = gold - in_second, in_second
        kept = cross_validated(candidates.scores, right, halves[candidates.x], gold=of_halves)
        scores = {**_best(best), "f1_crossvalidated": 2 * int(right[kept].sum()) / (int(kept.sum()) + gold)}
        if pair.test is None:
            note = f"no gold of a test split; threshold {threshold:.4f} is of the {pair.split} split"
            return _Found(scores, [note], _items(candidates.take(kept), pair.data))
        held_out = self._mine(encoder, pair.languages, pair.test)
        right = _right(held_out, pair.test)
        gold = len(pair.test.gold)
        found = at_threshold(held_out.scores, right, gold=gold, threshold=threshold)
        scores |= {"f1": found.f1, "precision": found.precision, "recall": found.recall}
        items = _items(held_out.take(held_out.scores >= threshold), pair.test)
        return _Found(scores, [f"threshold {threshold:.4f} from the {pair.split} split"], items)

    def _mine(self, encoder: Embeds, languages: tuple[str, str], data: BuccSplit) -> Candidates:
        """The pairs retrieved, by the rows of their texts; those of repeated texts are gone."""
        rows = []
        vectors = []
        for side, language in zip((data.source, data.target), languages, strict=True):
            counts = Counter(side.texts)
            row_of = {text: row for row, text in enumerate(side.texts)}
            vectors.append(_embed(encoder, list(counts), language))
            rows.append(np.array([row_of[text] if count == 1 else -1 for text, count in counts.items()]))
        found = retrieve(*best_both_ways(*vectors, k=self.k, margin=self.margin), self.retrieval)
        x = rows[0][found.x]
        y = rows[1][found.y]
        return Candidates(found.scores, x, y).take((x >= 0) & (y >= 0))


@dataclass(frozen=True, kw_only=True, slots=True)
class BuccBestF1(BuccTask):
    """The protocol of sentence-transformers' ``bucc2018.py`` (Reimers & Gurevych 2020), which EMS takes over.

    One split gives both the threshold and the F1, so nothing is held out; every id is a text of its own, and pairs
    that score below 1 are dropped. The search is exact here; the script's is approximate by default, and finds less.

    Attributes:
        k: neighbours scored, and averaged over in the margin.
        least: least score of a pair, a ratio.
    """

    name: ClassVar[str] = "bucc_best_f1"
    main_metric: ClassVar[str] = "best_f1"

    k: int = 4
    least: float = 1.0

    def __post_init__(self) -> None:
        check_k(self.k)

    def score(self, encoder: Embeds, pair: BuccPair) -> _Found:
        """See ``BuccTask.score``."""
        sides = zip((pair.data.source, pair.data.target), pair.languages, strict=True)
        x, y = (_embed(encoder, side.texts, language) for side, language in sides)
        candidates = retrieve(*best_both_ways(x, y, k=self.k))
        candidates = candidates.take(candidates.scores >= self.least)
        best = best_threshold(candidates.scores, _right(candidates, pair.data), gold=len(pair.data.gold))
        extracted = candidates.take(np.argsort(-candidates.scores, kind="stable")[: best.extracted])
        note = f"threshold {best.threshold:.4f}, of the {pair.split} split itself"
        return _Found(_best(best), [note], _items(extracted, pair.data))


@dataclass(frozen=True, kw_only=True, slots=True)
class BuccMTEB(BuccTask):
    """mteb's protocol for its task ``BUCC``, MEXMA's Table 1: no mining, a search without a threshold.

    Only the sources of gold pairs are queries, the whole English side the candidates; the nearest by cosine is scored
    with F1 over the English ids, weighted by how often each is gold. mteb's data are the shared task's training data.

    Attributes:
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    name: ClassVar[str] = "bucc_mteb"
    main_metric: ClassVar[str] = "f1"

    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def texts(self, split: BuccSplit) -> tuple[Sequence[str], Sequence[str]]:
        """See ``BuccTask.texts``."""
        return [split.source.texts[row] for row, _ in split.gold], split.target.texts

    def score(self, encoder: Embeds, pair: BuccPair) -> _Found:
        """See ``BuccTask.score``."""
        gold = np.array([target for _, target in pair.data.gold])
        queries, candidates = self.texts(pair.data)
        x, y = (_embed(encoder, *side) for side in zip((queries, candidates), pair.languages, strict=True))
        nearest = exact_topk(x, y, k=1).indices[:, 0].numpy()
        f1, precision = weighted_scores(nearest, gold)
        right = nearest == gold
        scores = {"f1": float(f1.mean()), "precision": float(precision.mean()), "accuracy": float(right.mean())}
        shown = np.concatenate([gold, np.arange(len(y))])  # candidate i is to be the translation of query i
        examples = wrong_neighbours(
            right,
            nearest + len(gold),
            queries,
            [candidates[row] for row in shown],
            lambda i, j: float(x[i] @ y[shown[j]]),
            languages=pair.languages,
            limit=self.examples,
        )
        return _Found(scores, [], Items(f1), examples)


def check_k(k: int) -> None:
    """Says what k may be.

    Raises:
        ConfigError: it is below 1.
    """
    if k < 1:
        raise ConfigError(f"k must be 1 or more, got {k}")


def _embed(encoder: Embeds, texts: Sequence[str], language: str) -> Float32[ndarray, "n d"]:
    return stream_vectors(functools.partial(encoder.encode, language=language), texts, normalize=True)


def _right(candidates: Candidates, data: BuccSplit) -> Bool[ndarray, " n"]:
    gold = set(data.gold)
    pairs = zip(candidates.x.tolist(), candidates.y.tolist(), strict=True)
    return np.array([pair in gold for pair in pairs], dtype=bool)


def _items(extracted: Candidates, data: BuccSplit) -> Items:
    """F1 as 2 c / (extracted + gold), by source sentence, so that encoders can be compared on resampled sentences."""
    count = len(data.source.ids)
    hits = np.bincount(extracted.x[_right(extracted, data)], minlength=count)
    gold = np.bincount([source for source, _ in data.gold], minlength=count)
    return Items(2.0 * hits, None, np.bincount(extracted.x, minlength=count) + 1.0 * gold)


def _best(found: Extraction) -> dict[str, float]:
    return {"best_f1": found.f1, "best_precision": found.precision, "best_recall": found.recall}


def _with_shared_metrics(subsets: Sequence[SubsetScores]) -> list[SubsetScores]:
    """With the metrics that all of them have."""
    shared = [metric for metric in subsets[0].scores if all(metric in subset.scores for subset in subsets)]
    return [replace(subset, scores={metric: subset.scores[metric] for metric in shared}) for subset in subsets]


def _members(subsets: Sequence[SubsetScores], official: bool) -> Mapping[str, Sequence[SubsetScores]]:
    members = {f"all_{len(subsets)}": subsets}
    return members | {f"bucc_{len(subsets)}of{len(TRAINING_GOLD)}": subsets} if official else members
