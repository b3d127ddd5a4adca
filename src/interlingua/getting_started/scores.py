"""Scores of the encoder on the held-out messages, compared with the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlingua.config.languages import resolve_language
from interlingua.corpus.formats.evaluation_sets import pair_files, read_pair_file
from interlingua.encoder.model_info import describe_encoder
from interlingua.encoder.protocol import TextEncoder
from interlingua.evaluation.scores import TaskResult
from interlingua.evaluation.suite import evaluate_suite
from interlingua.getting_started.baselines import random_accuracy, tfidf_accuracy
from interlingua.runtime.progress import SILENT, Progress

LineKind = Literal["sentences", "names"]
Script = Literal["other", "latin"]
MIN_MESSAGES = 100
"""Minimum number of held-out messages for a language to count in the averages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageScore:
    """P@1 in one language.

    Each message's translation is searched among all held-out messages of the language and kind.
    """

    code: str
    """``deu_Latn``."""
    name: str
    """``German``."""
    script: Script
    kind: LineKind
    messages: int
    """Held-out messages; also the number of candidates."""
    random: float
    """Chance."""
    tfidf: tuple[float, float]
    """Character n-grams: from the language to English, and back."""
    model: tuple[float, float]
    """Score of the encoder."""

    @property
    def counts(self) -> bool:
        """True if the language is in averages and drawings."""
        return self.messages >= MIN_MESSAGES

    @property
    def tfidf_mean(self) -> float:
        """The mean of both directions."""
        return sum(self.tfidf) / 2

    @property
    def model_mean(self) -> float:
        """The mean of both directions."""
        return sum(self.model) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Average:
    """Unweighted means over languages of one kind of script with ``MIN_MESSAGES`` or more."""

    script: Script
    kind: LineKind
    languages: int
    random: float
    tfidf: float
    model: float

    @property
    def ratio(self) -> float:
        """The encoder's P@1, divided by that of character n-grams."""
        if not self.tfidf:
            return float("inf")
        return self.model / self.tfidf


def score_with_baselines(
    encoder: TextEncoder,
    folders: Mapping[LineKind, Path],
    *,
    name: str,
    output: Path,
    progress: Progress = SILENT,
) -> list[LanguageScore]:
    """Score the encoder with the ``tatoeba`` task, and the baselines on the same texts.

    Args:
        encoder: the encoder to score.
        folders: for each kind, a folder of ``<lang>-eng.tsv`` files.
        name: name of the encoder in the result files.
        output: gets the task's own result files.
        progress: reports progress.
    """
    scores: list[LanguageScore] = []
    for kind, folder in folders.items():
        model = describe_encoder(encoder, name=name)
        # The task gives both directions of P@1 for each language.
        results = evaluate_suite(
            encoder, ["tatoeba"], folder, output=output, model=model, progress=progress
        )
        scores += _baseline_scores(results[0], kind, folder)
    return scores


def averages(scores: Sequence[LanguageScore]) -> list[Average]:
    """Compute the averages of all groups that have languages.

    Sentences come before names, and other scripts before Latin script.
    """
    found = []
    # In the order in which tables show them.
    kinds: tuple[LineKind, ...] = ("sentences", "names")
    scripts: tuple[Script, ...] = ("other", "latin")
    for kind in kinds:
        for script in scripts:
            group = [s for s in scores if s.counts and s.kind == kind and s.script == script]
            if group:
                found.append(_average(script, kind, group))
    return found


def _average(script: Script, kind: LineKind, group: Sequence[LanguageScore]) -> Average:
    return Average(
        script=script,
        kind=kind,
        languages=len(group),
        random=sum(score.random for score in group) / len(group),
        tfidf=sum(score.tfidf_mean for score in group) / len(group),
        model=sum(score.model_mean for score in group) / len(group),
    )


def _baseline_scores(result: TaskResult, kind: LineKind, folder: Path) -> list[LanguageScore]:
    """Return the task's own scores of each language next to those of the baselines."""
    # The task names its subsets by the files.
    files = {file.name: file for file in pair_files(folder)}
    scores = []
    for subset in result.subsets:
        language = resolve_language(subset.languages[0])
        scores.append(
            LanguageScore(
                code=language.code,
                name=language.name,
                script="latin" if language.is_latin else "other",
                kind=kind,
                messages=subset.pairs,
                random=random_accuracy(subset.pairs),
                tfidf=tfidf_accuracy(*read_pair_file(files[subset.name])),
                model=(subset.scores["accuracy_forward"], subset.scores["accuracy_backward"]),
            )
        )
    return scores
