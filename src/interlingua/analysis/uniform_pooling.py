"""Drop of a task's score if all tokens weigh the same: MEXMA (Janeiro et al. 2024), Table 10."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from interlingua.analysis.record import Analysis, Better, Measure
from interlingua.analysis.subject import Subject, needs_states
from interlingua.config import CheckedSettings
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.pooling import PoolingMode
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.data.folders import content_sha256
from interlingua.evaluation.scores import TaskResult
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.task import options
from interlingua.runtime.progress import SILENT, Progress

_NOTE = (
    "each difference is relative to the score with CLS, 100 (CLS - uniform) / CLS, as in the"
    " paper's table, although the paper's text says relative to the other score"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class UniformPooling(CheckedSettings):
    """Tasks scored with the first token's state, and with the mean of all positions' states.

    The weights do not change. Both use the model's own normalization, prompt and length limit. The
    mean includes special tokens, as the paper's seems to.
    """

    name: ClassVar[str] = "uniform_pooling"
    version: ClassVar[str] = "1"

    suite: tuple[str, ...] = ("xsim",)
    """Names of tasks, or of groups of tasks."""
    languages: tuple[str, ...] | None = None
    """Languages for tasks that choose among languages; default: all that have files."""

    def unfit(self, subject: Subject) -> str | None:
        """Return why this model is unfit for the analysis, see ``Analyser.unfit``."""
        return needs_states(subject)

    def run(self, subject: Subject, data: Path, *, progress: Progress = SILENT) -> Analysis:
        """Analyze a model, see ``Analyser.run``."""
        encoder = subject.states_of(self.name)
        scored = {}
        ways: tuple[PoolingMode, ...] = ("cls", "mean")
        progress.start(len(ways), "poolings", self.name)
        for pooling in ways:
            scored[pooling] = evaluate_suite(
                _with_pooling(encoder, pooling),
                build_tasks(self.suite, languages=self.languages, data=data),
                data,
                prompt=subject.prompt,
                batch_tokens=subject.batch_tokens,
                progress=progress.within(1),
            )
        # Pairs of one task's results, with CLS first.
        results = list(zip(*(scored[pooling] for pooling in ways), strict=True))
        measures = [measure for cls, uniform in results for measure in compared(cls, uniform)]
        notes = [_NOTE]
        own = subject.info.pooling
        if own != "cls":
            notes.append(
                f"the model pools by {own}, so the state of its first token alone was not trained"
            )
        # The facts about the data are the same for both poolings; all tasks' facts are joined.
        of_tasks = [cls for cls, _ in results]
        notes += [note for cls in of_tasks for note in cls.notes]
        revisions = dict.fromkeys(cls.data_revision or "" for cls in of_tasks)
        languages = {code for cls in of_tasks for s in cls.subsets for code in s.languages}
        return Analysis(
            task=self.name,
            version=self.version,
            dataset="+".join(dict.fromkeys(cls.dataset for cls in of_tasks)),
            data_sha256=content_sha256([[cls.data_sha256 for cls in of_tasks]]),
            data_revision="+".join(revisions).strip("+") or None,
            languages=tuple(sorted(languages)),
            sentences=max(subset.pairs for cls in of_tasks for subset in cls.subsets),
            measures=tuple(measures),
            notes=tuple(notes),
            **options(self),
        )


def compared(cls: TaskResult, uniform: TaskResult) -> list[Measure]:
    """Return both scores of a task, and their difference in percent of the one with CLS.

    The difference is left out if that score is 0.
    """
    better: Better = "higher" if cls.higher_is_better else "lower"
    metric = cls.main_metric

    def score(result: TaskResult, way: str, meaning: str) -> Measure:
        return Measure(
            name=f"{result.task}_{way}",
            value=result.main_score,
            unit="share",
            better=better,
            by_language={subset.name: subset.scores[metric] for subset in result.subsets},
            definition=f"{metric} of {result.task}, mean over its subsets, {meaning}",
        )

    measures = [
        score(cls, "cls", "first token"),
        score(uniform, "uniform", "mean of all positions"),
    ]
    if cls.main_score:
        change = 100 * (cls.main_score - uniform.main_score) / cls.main_score
        definition = f"100 (CLS - uniform) / CLS; the denominator is {100 * cls.main_score:.2f} %"
        measures.append(
            Measure(name=f"{cls.task}_delta", value=change, unit="percent", definition=definition)
        )
    return measures


def _with_pooling(encoder: Encoder, pooling: PoolingMode) -> Any:
    """Return an encoder of the same weights and vocabulary with another pooling."""
    # Special tokens count, as the paper's seem to, whatever the model's own setting is.
    settings = dataclasses.replace(encoder.settings, pooling=pooling, include_special=True)
    after_pooling = (encoder.post_pooling, encoder.language_shift)
    other = Encoder(encoder.backbone, encoder.vocabulary, settings, *after_pooling).eval()
    return OwnEncoder(other, name=pooling)
