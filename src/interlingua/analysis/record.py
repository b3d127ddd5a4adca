"""The record of an analysis, a file next to the results.

The file is ``results/{model}/{revision}/{analysis}.analysis.json``. The numbers of single sentences
are next to it in a ``.npz`` file, so that two models can be compared by the same sentences later.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from jaxtyping import Float, Float64
from numpy import ndarray

from interlingua.errors import DataError
from interlingua.evaluation.metrics.correlation import interval
from interlingua.evaluation.results import (
    ANALYSIS_KEY,
    ANALYSIS_SUFFIX,
    NOT_OF_THE_KIND,
    TABLE_SUFFIX,
    find_sidecar,
    read_table,
    result_line,
    result_path,
    without_folders,
    write_together,
)
from interlingua.storage.arrays import arrays_of
from interlingua.storage.files import PathLike, atomic_write
from interlingua.storage.formats import ANALYSIS as ANALYSIS_FORMAT
from interlingua.storage.json_text import parse_json, read_json_text
from interlingua.storage.record import fault_of

ANALYSIS_RESAMPLES = 2000
ValueUnit = Literal["share", "cosine", "nats", "percent", ""]
Better = Literal["lower", "higher"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One number about a model.

    Attributes:
        name: the same in every file.
        value: the number.
        unit: ``share`` (0 to 1, shown in percent), ``cosine``, ``nats``, ``percent``, or nothing.
        definition: one sentence on the measure.
        better: the direction in which a model gets more language-agnostic, if there is one.
        ideal: the value of a space without any trace of the language, if that is a number.
        low: lower bound of the 95 % bootstrap interval over the sentences, if the measure is a
            mean over them.
        high: the upper one.
        by_language: the number of each language.
        items: the values that are averaged, one per sentence; kept to compare two models sentence
            by sentence.
    """

    name: str
    value: float
    unit: ValueUnit
    definition: str
    better: Better | None = None
    ideal: float | None = None
    low: float | None = None
    high: float | None = None
    by_language: Mapping[str, float] = field(default_factory=dict)
    items: Float64[ndarray, " n"] | None = field(default=None, compare=False, repr=False)

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Analysis:
    """The result of one analysis of one model.

    Attributes:
        task: the analysis, followed by the data's name unless the data are a published set.
        version: of its definitions; numbers of unequal versions can't be compared.
        dataset: the folder's name; empty if the sentences are the analysis's own.
        data_sha256: of the texts.
        data_revision: the published revision that the texts were recognized as, if any.
        settings: the analysis's options.
        changed: those that differ from their defaults.
        languages: ``eng_Latn`` codes.
        sentences: number of lines of each language; if tasks were scored, of the largest subset.
        measures: the numbers.
        tables: name -> key -> number; a key is an ordered pair of languages
            (``deu_Latn-eng_Latn``) or a head (``3``).
        examples: shown on a page.
        notes: facts that a reader of the numbers must know.
        seconds: wall time.
        provenance: as in result files.
    """

    task: str
    version: str
    dataset: str
    data_sha256: str
    data_revision: str | None
    settings: Mapping[str, Any]
    changed: tuple[str, ...]
    languages: tuple[str, ...]
    sentences: int
    measures: tuple[Measure, ...]
    tables: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    examples: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.provenance["model"]["name"])

    @property
    def texts(self) -> str:
        """The data it was measured on, to append to a title."""
        # Some analyses have sentences of their own.
        if not self.dataset:
            return ""
        return f": {len(self.languages)} languages, {self.sentences:,} lines each of {self.dataset}"

    @property
    def by_name(self) -> dict[str, Measure]:
        """The measures by their names."""
        return {measure.name: measure for measure in self.measures}

    def __getitem__(self, name: str) -> Measure:
        """Return the measure of that name."""
        return self.by_name[name]


def mean_measure(
    name: str, values: Float[ndarray, "l n"], languages: Sequence[str], **facts: Any
) -> Measure:
    """Return a measure that is the mean over languages and sentences, with its interval.

    Lines are resampled together with all their translations, because these are not independent.

    Args:
        name: of the measure.
        values: of each language and line.
        languages: codes along the first axis of the values.
        facts: the measure's other fields.
    """
    values = np.asarray(values, np.float64)
    items = values.mean(axis=0)
    low, high = bootstrap_mean(items)
    by_language = dict(zip(languages, values.mean(axis=1).tolist(), strict=True))
    computed: dict[str, Any] = {
        "low": low,
        "high": high,
        "by_language": by_language,
        "items": items,
    }
    # The caller's facts override the computed ones.
    return Measure(name=name, value=float(items.mean()), **{**computed, **facts})


def bootstrap_mean(items: Float64[ndarray, " n"]) -> tuple[float, float]:
    """Compute the 95 % percentile interval of a mean.

    Args:
        items: at least one.
    """
    values, counts = np.unique(items, return_counts=True)
    rng = np.random.default_rng(1)
    # Items often have few distinct values, such as flags. Then the count of each value is drawn
    # from a multinomial, which is the same as drawing the items. For many distinct values the table
    # of draws would be large.
    if len(values) > 1000:
        means = [
            items[rng.integers(len(items), size=len(items))].mean()
            for _ in range(ANALYSIS_RESAMPLES)
        ]
        return interval(np.array(means))
    drawn = rng.multinomial(len(items), counts / len(items), size=ANALYSIS_RESAMPLES)
    return interval(np.asarray(drawn @ values / len(items)))


def write_analysis(analysis: Analysis, folder: PathLike) -> Path:
    """Write an analysis and its items, both at once; see ``evaluation.results``.

    Args:
        analysis: with its provenance.
        folder: gets ``results/{model}/{revision}/{analysis}.analysis.json``; see
            ``evaluation.results.write_result``.

    Returns:
        The file.
    """
    path = analysis_path(analysis, Path(folder))
    kept: dict[str, Any] = {
        f"{m.name}/values": m.items for m in analysis.measures if m.items is not None
    }

    def render(digests: dict[str, str]) -> str:
        content = {**analysis_to_json(analysis), "files": digests}
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"

    def write_items(place: Path) -> None:
        with atomic_write(place, "wb") as file:
            np.savez_compressed(file, **kept)

    # None removes the items of an earlier run.
    write_together(path, render, {path.with_suffix(".items.npz"): write_items if kept else None})
    return path


def analysis_path(analysis: Analysis, folder: Path) -> Path:
    """Return the path of an analysis below ``folder``.

    It is next to results of the same model and settings. The path of a result is made from
    some of its fields, and an analysis has these fields, too.
    """
    return result_path(cast(Any, analysis), folder).with_suffix(ANALYSIS_SUFFIX)


def analysis_to_json(analysis: Analysis) -> dict[str, Any]:
    """Return the file's content."""
    plain = {f.name: getattr(analysis, f.name) for f in dataclasses.fields(analysis)}
    # Two fields have other names in the file.
    task = plain.pop("task")
    plain["dataset_revision"] = plain.pop("data_revision")
    plain["measures"] = [_measure_to_json(measure) for measure in analysis.measures]
    return {"format": ANALYSIS_FORMAT.tag, ANALYSIS_KEY: task, **plain}


def analysis_table_text(analyses: Iterable[Analysis]) -> str:
    """Return lines of a table of results: analyses without items and examples."""
    lines = []
    for one in analyses:
        content = analysis_to_json(dataclasses.replace(one, examples=()))
        lines.append(result_line(content | {"provenance": without_folders(one.provenance)}))
    return "".join(lines)


def read_analyses(paths: Iterable[PathLike]) -> list[Analysis]:
    """Read analysis files, analyses in tables of results, and all analysis files below folders.

    A folder or a table may hold none.

    Raises:
        DataError: a file is missing, or is not an analysis.
    """
    analyses: list[Analysis] = []
    for path in map(Path, paths):
        if path.is_dir():
            analyses += map(read_analysis, sorted(path.rglob(f"*{ANALYSIS_SUFFIX}")))
        elif path.suffix == TABLE_SUFFIX:
            analyses += read_table(
                path, lambda record: _from_json(record, None), analyses=True, kind="an analysis"
            )
        else:
            analyses.append(read_analysis(path))
    return analyses


def read_analysis(path: PathLike) -> Analysis:
    """Read one file.

    Raises:
        DataError: it is missing, or is not an analysis.
    """
    path = Path(path)
    try:
        return _from_json(parse_json(read_json_text(path)), path)
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path", path=path
        ) from error
    # A file of another kind may lack a key, have too many keys, or not be an object at all.
    except NOT_OF_THE_KIND as error:
        raise DataError(
            f"is not an analysis file ({type(error).__name__}: {error})", path=path
        ) from error


def _from_json(content: dict[str, Any], path: Path | None) -> Analysis:
    """Return the analysis of a file; ``path`` is None for a line of a table, which has no items."""
    # Some keys are taken out one after another; the rest must be the fields of Analysis.
    if fault := fault_of(content, ANALYSIS_FORMAT):
        raise ValueError(fault)
    del content["format"]
    content["task"] = content.pop(ANALYSIS_KEY)
    content["data_revision"] = content.pop("dataset_revision")
    digests = content.pop("files", None)
    items = None
    if path is not None:
        items = find_sidecar(path, path.with_suffix(".items.npz"), digests)
    content["measures"] = tuple(_measures(content["measures"], items))
    # JSON has no tuples.
    for name in ("changed", "languages", "examples", "notes"):
        content[name] = tuple(content[name])
    return Analysis(**content)


def _measure_to_json(measure: Measure) -> dict[str, Any]:
    values = {
        f.name: getattr(measure, f.name) for f in dataclasses.fields(measure) if f.name != "items"
    }
    return {"name": measure.name, "title": measure.title, **values}


def _measures(entries: list[dict[str, Any]], path: Path | None) -> list[Measure]:
    kept: dict[str, Any] = {}
    if path is not None:
        kept = {name.removesuffix("/values"): array for name, array in arrays_of(path)}
    # The title is there for readers of the file; it follows from the name.
    for entry in entries:
        entry.pop("title")
    return [Measure(**entry, items=kept.get(entry["name"])) for entry in entries]
