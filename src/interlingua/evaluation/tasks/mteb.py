"""Any task of mteb (Muennighoff et al. 2023), run by mteb itself on our encoder."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlingua.config.languages import find_code
from interlingua.errors import ConfigError, DataError, import_extra
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import content_sha256, full_code
from interlingua.evaluation.mteb_data import load_data
from interlingua.evaluation.mteb_encoder import MTEBEncoder
from interlingua.evaluation.scores import SubsetScores, TaskResult, mean_scores
from interlingua.evaluation.task import options
from interlingua.runtime.progress import SILENT, Progress

_PREFIX = "mteb:"


@dataclass(frozen=True, kw_only=True)
class MTEB:
    """A task of mteb: ``mteb:STS17`` in a suite.

    mteb computes the scores, with our encoder and prompts.

    The result's name is ``mteb_STS17``. mteb's own complete file is written to ``mteb/results`` in
    the output folder, where ``mteb.ResultCache`` finds it. Our result has only mteb's main metric.
    mteb's tasks use the data that other tasks read (STS17, STS benchmark, STS12-16, SICK, Tatoeba,
    BUCC), and clones of mteb's data sets in the subfolder ``mteb/`` of the data folder. Otherwise
    mteb uses its cache and the hub.

    Attributes:
        task: name of the task in mteb.
        languages: languages, or mteb's names of subsets (``en-de``), to score; all by default.
        split: mteb's split; by default test, or the first that mteb evaluates.
    """

    task: str = ""
    languages: Sequence[str] | None = None
    split: str | None = None

    def __post_init__(self) -> None:
        if not self.task:
            raise ConfigError("mteb: the task is missing; add its name, for example mteb:STS17")
        get_task(self.task)

    @property
    def name(self) -> str:
        """The name in a suite, ``mteb:STS17``."""
        return _PREFIX + self.task

    @property
    def version(self) -> str:
        """The version of mteb."""
        return f"mteb {_mteb().__version__}"

    @property
    def main_metric(self) -> str:
        """The main metric of the task in mteb."""
        return str(get_task(self.task).metadata.main_score)

    def find(self, data: Path) -> Path:
        """Return the folder of all data sets, if the task's data are there or known to mteb.

        mteb's own sources are its cache and the hub.

        Raises:
            DataError: they are in none of these places.
        """
        load_data(get_task(self.task), data)
        return data

    def evaluate(
        self, encoder: CachedEncoder, data: Path, *, progress: Progress = SILENT
    ) -> TaskResult:
        """Score an encoder with mteb's own implementation of the task."""
        start = time.perf_counter()
        with warnings.catch_warnings():
            # ignore warnings about the internals of mteb and its libraries
            warnings.simplefilter("ignore")
            task, origin, notes = self._prepared(data)
            # mteb does not say how many texts there are.
            progress.start(None, "texts", self.name)
            bridge = MTEBEncoder(encoder, task, progress)
            (found,) = _mteb().evaluate(
                bridge,
                task,
                cache=None,
                co2_tracker=False,
                encode_kwargs={"batch_size": 1024, "show_progress_bar": False},
                show_progress_bar=False,
            )
        # sorted, as mteb decides in which order it asks for texts
        data_sha256 = content_sha256([sorted(bridge.digests)])
        content = found.model_dump(mode="json")
        # local data have no revision
        if origin is not None:
            content["dataset_revision"] = data_sha256[:12]
        (entries,) = content["scores"].values()
        subsets = [self._subset(task, entry) for entry in entries]
        group = f"all_{len(subsets)}"
        settings = options(self)
        return TaskResult(
            task=f"mteb_{self.task}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=origin or task.metadata.dataset["path"],
            data_sha256=data_sha256,
            data_revision=None,
            subsets=tuple(subsets),
            notes=tuple(notes),
            seconds=time.perf_counter() - start,
            mteb={"result": content, "model_meta": bridge.mteb_model_meta.to_dict()},
            settings=settings["settings"],
            changed=tuple(name for name in settings["changed"] if name != "task"),
            groups={group: mean_scores(subsets)},
            members={group: tuple(subset.name for subset in subsets)},
        )

    def _prepared(self, data: Path) -> tuple[Any, str | None, list[str]]:
        """Return the task with the data to be scored, their source, and notes about them."""
        task = get_task(self.task)
        splits = list(task.eval_splits)
        default = "test" if "test" in splits else splits[0]
        split = self.split or default
        if split not in splits:
            raise ConfigError(
                f"{self.task}: unknown split {split!r}; use one of: {', '.join(splits)}"
            )
        task.filter_eval_splits([split])
        origin = load_data(task, data)
        notes = []
        if origin is not None:
            notes.append(f"data from the folder {origin}")
        # after loading, which may leave fewer subsets than mteb has
        task.hf_subsets = self._chosen(task)
        if len(splits) > 1:
            notes.append(
                f"only the split {split} of {', '.join(splits)} was scored; the score of mteb is"
                " the mean over them"
            )
        if task.superseded_by:
            notes.append(f"mteb recommends {task.superseded_by} instead")
        of_all = len(task.metadata.hf_subsets)
        if len(task.hf_subsets) < of_all:
            notes.append(
                f"only {len(task.hf_subsets)} of {of_all} subsets were scored, so the score is not"
                " comparable with mteb's leaderboard"
            )
        return task, origin, notes

    def _chosen(self, task: Any) -> list[str]:
        """Return the names of the subsets in the requested languages.

        Raises:
            DataError: a requested subset is missing.
        """
        if self.languages is None:
            return list(task.hf_subsets)
        codes_of = task.metadata.hf_subsets_to_langscripts
        known = {name: list(map(find_code, codes_of[name])) for name in task.hf_subsets}
        chosen: set[str] = set()
        for item in self.languages:
            # look for mteb's own names first, as they need not be language codes: "default"
            if item in known:
                found = [item]
            else:
                found = [name for name, codes in known.items() if full_code(item) in codes]
            if not found:
                raise DataError(
                    f"{self.task}: no data for {item!r}; use one of: {', '.join(known)}"
                )
            chosen.update(found)
        return [name for name in task.hf_subsets if name in chosen]

    def _subset(self, task: Any, entry: dict[str, Any]) -> SubsetScores:
        """Convert the main score of a subset to our form."""
        name = entry["hf_subset"]
        # an unknown code stays as mteb spells it
        codes = [find_code(code) or code.replace("-", "_") for code in entry["languages"]]
        # a task with one subset has no level of subsets in its data
        items: Any = (task.dataset.get(name) or task.dataset)[task.eval_splits[0]]
        # retrieval tasks have queries, BUCC has gold pairs, and all other tasks have rows
        if isinstance(items, dict):
            items = items.get("queries", items.get("gold", items))
        return SubsetScores(
            name=name,
            languages=(codes[0], codes[-1]),
            pairs=len(items),
            scores={self.main_metric: float(entry["main_score"])},
        )


def get_task(name: str) -> Any:
    """Return a task of mteb.

    Raises:
        ConfigError: mteb has no task of that name; the error suggests the nearest one.
        MissingExtraError: mteb is not installed.
    """
    mteb = _mteb()
    try:
        return mteb.get_task(name)
    except KeyError as error:
        raise ConfigError(f"mteb: unknown task {name!r} ({str(error).strip(chr(34))})") from error


def _mteb() -> Any:
    return import_extra("mteb", extra="mteb")
