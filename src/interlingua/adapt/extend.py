"""Addition of a language to a trained model: new vocabulary if needed, then self-distillation.

The unchanged model is the teacher. From each pair the teacher reads the pivot side, whose language
it knows. The student learns to map both sides to the teacher's vector of the pivot side (Reimers
and Gurevych 2020), and to keep the vectors of sentences in other languages (replay). Measurements
before and after show the gain of the new language and the loss of the others.

Every stage is a step of a workspace, so an interrupted run resumes with the same command.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from interlingua.adapt import text
from interlingua.adapt.development import (
    Development,
    DevelopmentScores,
    TranslationSet,
    read_development,
    read_translations,
    sample_evenly,
)
from interlingua.adapt.settings import ExtendSettings, open_extension
from interlingua.adapt.vocabulary_growth import (
    Fragmentation,
    grow_encoder,
    grow_vocabulary,
    measure_fragmentation,
)
from interlingua.config.languages import resolve_language
from interlingua.config.options import listed
from interlingua.encoder.encoder import Encoder
from interlingua.errors import DataError, InterlinguaError
from interlingua.evaluation.validation import validation_evaluator
from interlingua.exporters.sentence_transformers import find_model
from interlingua.methods.distill import DistillConfig
from interlingua.preparation.pipeline import prepare_corpus
from interlingua.runtime.progress import progress_of
from interlingua.storage.workspace import WORKSPACE_RECORD, Workspace
from interlingua.training.config import (
    EncoderConfig,
    MethodConfig,
    OptimizerConfig,
    RunConfig,
    ScheduleConfig,
    TrainConfig,
)
from interlingua.training.feeds.data_config import DataConfig, MonolingualConfig
from interlingua.training.loop import run_training

log = logging.getLogger("interlingua")
_MAX_PIECES = 2000
"""Maximum number of new pieces if the user sets no maximum and the text requires new pieces."""
MAX_PREMIUM = 1.5
"""Tokens of the language per token of the pivot in the same pairs; from this value on the
vocabulary grows."""
MAX_UNKNOWN = 0.005
"""Share of unknown tokens; from this value on the vocabulary grows."""
KEPT_TEXTS = 20_000
"""Maximum number of texts of the pivot language whose tokens new pieces must not change; the same
maximum applies to the texts of all other languages together."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyReport:
    """The fragmentation of the new language by the vocabulary, before and after."""

    before: Fragmentation
    premium: float
    """Tokens of the language for each token of the pivot, in the same pairs."""
    pieces: int
    """New pieces; 0 = the vocabulary is as it was."""
    after: Fragmentation
    premium_after: float
    kept_texts: int
    """Texts of other languages that were compared."""
    changed_texts: int
    """Number of the compared texts that are tokenized differently now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtendResult:
    """The written model, its gain and its loss."""

    model: Path
    """The new model directory."""
    language: str
    vocabulary: VocabularyReport
    before: DevelopmentScores
    after: DevelopmentScores
    own: tuple[str, ...]
    """The sets in the new language; all others belong to the forgetting check."""

    @property
    def gained(self) -> float:
        """Points of P@1 that the new language gained, mean over its sets."""
        gains = [self.after.retrieval[name] - self.before.retrieval[name] for name in self.own]
        return sum(gains) / len(self.own)

    @property
    def lost(self) -> float | None:
        """Points of P@1 that other languages lost, mean over their sets; None without such sets."""
        others = [name for name in self.before.retrieval if name not in self.own]
        if not others:
            return None
        losses = [self.before.retrieval[name] - self.after.retrieval[name] for name in others]
        return sum(losses) / len(others)


class Extension:
    """One run, stage by stage.

    Args:
        settings: the user's options.
        progress: whether to show progress on standard error.
    """

    def __init__(self, settings: ExtendSettings, *, progress: bool) -> None:
        self.model = str(find_model(settings.model)[0])
        self.settings = dataclasses.replace(settings, model=self.model)
        self.progress = progress
        self.output = Path(settings.output)

    def run(self) -> ExtendResult:
        """Run all stages that no earlier call finished, in order.

        Raises:
            ConfigError: another process uses the folder, or the folder has other content.
            DataError: an input is broken, or there are too few pairs.
        """
        # Read and check all inputs before the folder is made, so that a user's error leaves none.
        encoder = Encoder.load(self.model)
        prompt = encoder.settings.prompt_text(self.settings.prompt)
        replay = text.read_replay(self.settings)
        checked = self.read_checked()
        if not (self.output / WORKSPACE_RECORD).exists():
            text.check_pair_count(self.settings)
        with open_extension(self.settings) as work:
            vocabulary, start = self.grow(work, encoder, replay)
            if not work.is_done("corpus"):
                work.begin("corpus")
                config = text.adaptation_corpus_config(self.settings, start, prompt)
                prepare_corpus(config, overwrite=True, progress=self.progress)
                work.finish("corpus")
            heldout = read_translations(self.output / "corpus" / "heldout")
            development = Development((*heldout, *checked.translations), checked.scored)
            own = self.own_sets(development)
            before = self.measured(work, "before", encoder, development, prompt)
            # Training holds the model twice, as student and as teacher; this copy is not needed.
            del encoder
            if replay and not work.is_done("replay"):
                with work.step("replay") as folder:
                    text.write_replay(folder, replay, prompt)
            replay_files = [self.output / "replay" / f"{code}.txt" for code in replay]
            self.train(work, start, replay_files, prompt)
            trained = Encoder.load(self.output / "model")
            after = self.measured(work, "after", trained, development, prompt)
        return ExtendResult(
            model=self.output / "model",
            language=self.settings.language,
            vocabulary=vocabulary,
            before=before,
            after=after,
            own=own,
        )

    def grow(
        self, work: Workspace, encoder: Encoder, replay: dict[str, list[str]]
    ) -> tuple[VocabularyReport, Path | str]:
        """Give the vocabulary new pieces if the language needs them.

        Returns:
            the measurements, and the model to start from: ``start/``, or the user's if nothing was
            added.
        """
        known = work.get("vocabulary")
        if known is not None:
            report = self._of_record(_report_of, known)
            if not report.pieces or work.is_done("start"):
                return report, self._first_model(report)
        # Measure how the vocabulary splits both sides of the same pairs.
        sides = text.read_sides(self.settings)
        code = self.settings.language
        before = measure_fragmentation(encoder.vocabulary, sides.language, language=code)
        of_pivot = measure_fragmentation(
            encoder.vocabulary, sides.pivot, language=self.settings.pivot
        )
        premium = before.tokens / max(1, of_pivot.tokens)
        report = VocabularyReport(
            before=before,
            premium=premium,
            pieces=0,
            after=before,
            premium_after=premium,
            kept_texts=0,
            changed_texts=0,
        )
        # The user sets the maximum number of new pieces, or it depends on the text.
        pieces = self.settings.new_pieces
        if pieces is None:
            pieces = 0
            if premium >= MAX_PREMIUM or before.unknown_share >= MAX_UNKNOWN:
                pieces = _MAX_PIECES
        if pieces:
            # Texts that the model knows should be split into the same tokens as before, because
            # their vectors would change otherwise.
            others = [sentence for texts in replay.values() for sentence in texts]
            keep = [*sample_evenly(sides.pivot, KEPT_TEXTS), *sample_evenly(others, KEPT_TEXTS)]
            grown = grow_vocabulary(
                encoder.vocabulary, sides.language, pieces=pieces, keep=keep, language=code
            )
            # The text may hold no piece that is worth adding.
            if grown.runs:
                after = measure_fragmentation(grown.vocabulary, sides.language, language=code)
                report = dataclasses.replace(
                    report,
                    pieces=len(grown.runs),
                    after=after,
                    premium_after=after.tokens / max(1, of_pivot.tokens),
                    kept_texts=len(keep),
                    changed_texts=grown.changed_texts,
                )
                grow_encoder(encoder, grown).save(work.begin("start"))
                work.finish("start")
        work.put("vocabulary", _plain(report))
        return report, self._first_model(report)

    def _first_model(self, report: VocabularyReport) -> Path | str:
        """Return the model to start from: with new pieces, or the user's unchanged model."""
        if report.pieces:
            return self.output / "start"
        return self.model

    def read_checked(self) -> Development:
        """Return the data of the forgetting check."""
        settings = self.settings
        return read_development(
            settings.check,
            settings.sts,
            pivot=settings.pivot,
            languages=listed(settings.check_languages),
            max_pairs=settings.check_pairs,
        )

    def own_sets(self, development: Development) -> tuple[str, ...]:
        """Return the sets of translations with a side in the new language."""

        def has_language(one: TranslationSet) -> bool:
            return self.settings.language in {resolve_language(code).code for code in one.languages}

        return tuple(one.name for one in development.translations if has_language(one))

    def measured(
        self, work: Workspace, when: str, encoder: Encoder, development: Development, prompt: str
    ) -> DevelopmentScores:
        """Return scores on all development data.

        They are kept in the record, so that they are computed once.
        """
        known = work.get(when)
        if known is not None:
            return self._of_record(lambda values: DevelopmentScores(**values), known)
        sets = len(development.translations) + len(development.scored)
        with progress_of(self.progress) as shown:
            shown.start(sets, "sets", f"measuring {when} training")
            scores = development.measure(encoder, prompt=prompt, progress=shown)
        work.put(when, dataclasses.asdict(scores))
        return scores

    def train(self, work: Workspace, start: Path | str, replay: list[Path], prompt: str) -> None:
        """Distill from the initial model; resume if interrupted.

        Raises:
            InterlinguaError: it was stopped.
        """
        if work.is_done("model"):
            return
        # Training resumes from the checkpoints in the run's folder.
        work.begin("run")
        # With few pairs, none are left for validation.
        evaluate = None
        if any((self.output / "corpus" / "valid_text").iterdir()):
            evaluate = validation_evaluator(self.output / "corpus" / "valid_text", prompt=prompt)
        result = run_training(
            self.train_config(start, replay), evaluate=evaluate, progress=self.progress
        )
        if result.interrupted or result.model is None:
            raise InterlinguaError(
                f"stopped after step {result.step} of {result.max_steps}, which is saved; run"
                " the same command again to resume"
            )
        with work.step("model") as temporary:
            shutil.copytree(result.model, temporary, dirs_exist_ok=True)

    def train_config(self, start: Path | str, replay: list[Path]) -> TrainConfig:
        """Return the config of the training run, which is also in ``run/config.toml``."""
        settings = self.settings
        monolingual = None
        replay_weight = 0.0
        if replay:
            replay_weight = settings.replay_weight
            monolingual = MonolingualConfig(
                paths=tuple(replay),
                batch_size=settings.replay_batch_size,
                max_tokens=settings.max_tokens,
            )
        options = DistillConfig(pivot=settings.pivot, replay_weight=replay_weight)
        # Sentences with weight 0 are not read.
        if not options.replay_weight:
            monolingual = None
        return TrainConfig(
            data=DataConfig(corpus=self.output / "corpus", monolingual=monolingual),
            encoder=EncoderConfig(path=str(start)),
            method=MethodConfig(name="distill", options=options),
            optimizer=OptimizerConfig(learning_rate=settings.learning_rate, weight_decay=0.0),
            schedule=ScheduleConfig(name="linear", warmup_steps=0.1),
            run=RunConfig(
                output=self.output / "run",
                num_train_epochs=settings.epochs,
                global_batch_size=settings.batch_size,
                max_grad_norm=1.0,
                logging_steps=0.02,
                eval_steps=0.25,
                save_steps=0.25,
                save_total_limit=1,
                seed=settings.seed,
                device=settings.device,
                threads=settings.threads,
            ),
        )

    def _of_record(self, make: Callable[[Any], T], values: Any) -> T:
        """Build an object from a value of the record.

        Raises:
            DataError: this version does not write such a value.
        """
        try:
            return make(values)
        except (TypeError, KeyError, ValueError) as error:
            place = self.output / WORKSPACE_RECORD
            raise DataError(
                f"cannot be read ({error}); start over in another folder", path=place
            ) from error


def _plain(report: VocabularyReport) -> dict[str, Any]:
    """Return a report as the record holds it."""
    values = dataclasses.asdict(report)
    # JSON would store a named tuple as a list, without the field names.
    for name in ("before", "after"):
        values[name] = values[name]._asdict()
    return values


def _report_of(values: dict[str, Any]) -> VocabularyReport:
    """Return the report of a record's values, the inverse of ``_plain``."""
    parts = {name: Fragmentation(**values[name]) for name in ("before", "after")}
    return VocabularyReport(**{**values, **parts})
