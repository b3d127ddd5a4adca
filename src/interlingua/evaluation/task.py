"""The base classes of tasks: evaluation protocols over a folder of data.

The base class has their common code, so that the code of each task is close to its paper.

``Task.evaluate`` finds the data set's folder, has its units scored one after the other, and makes
one result of their scores: means over groups of languages, digests of the data, the result's name,
options and time. A task states three things: where its data are (``folders`` and ``reader``), what
is scored on its own (``units``), and how (``score``). One that scores all of its data together,
such as a pool of all languages, replaces ``run`` instead.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
)

from jaxtyping import Float64
from numpy import ndarray

from interlingua.config import CheckedSettings
from interlingua.config.registry import check_choice
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import (
    choose_languages,
    content_sha256,
    find_folder,
    recognize,
)
from interlingua.evaluation.scores import Example, Items, SubsetScores, TaskResult, mean_scores
from interlingua.evaluation.tasks.groups import members_by_language
from interlingua.runtime.progress import SILENT, Progress

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Unit(Generic[T]):
    """Data that are scored on their own: a language pair, a language or a set.

    Attributes:
        name: of the scores, as the files spell it: ``deu-eng``.
        languages: source and target, ``eng_Latn`` codes.
        pairs: number of scored items: sentence pairs, questions or texts.
        data: the input of ``Task.score``.
        contents: all texts and labels, for the digest.
        sentences: texts to embed.
        key: the key of the unit in the digests of published data; by default the name.
        is_official: whether it has the size of the protocol's own data.
    """

    name: str
    languages: tuple[str, str]
    pairs: int
    data: T
    contents: Iterable[Sequence[str]]
    sentences: int
    key: str = ""
    is_official: bool = True


class Scored(NamedTuple):
    """The scores of one unit.

    Attributes:
        scores: metric -> fraction.
        items: the values that the main metric was computed from.
        examples: a sample of the errors.
        notes: remarks for a reader of the scores.
        repeats: the main metric in each of many resamples, for the intervals of groups.
    """

    scores: Mapping[str, float]
    items: Items | None = None
    examples: tuple[Example, ...] | None = None
    notes: Sequence[str] = ()
    repeats: Float64[ndarray, " r"] | None = None


@dataclass(kw_only=True)
class Findings:
    """The results of a task so far; ``Task.evaluate`` makes a ``TaskResult`` of them.

    Attributes:
        folder: of the data.
        subsets: scores, in the data's order.
        digests: key of a unit -> SHA-256 of its contents.
        added: digests of scored texts outside of the data set, such as altered sentences.
        is_official: whether all units have the sizes of the protocol's own data.
        revision: the published revision with these digests; set after scoring.
        repeats: subset -> see ``Scored.repeats``.

    The other attributes are those of ``TaskResult``.
    """

    folder: Path
    subsets: list[SubsetScores] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    is_official: bool = True
    revision: str | None = None
    items: dict[str, Items] = field(default_factory=dict)
    examples: dict[str, tuple[Example, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    tables: dict[str, Mapping[str, float]] = field(default_factory=dict)
    repeats: dict[str, Float64[ndarray, " r"]] = field(default_factory=dict)

    def record(self, unit: Unit[Any]) -> None:
        """Record which data were scored."""
        self.digests[unit.key or unit.name] = content_sha256(unit.contents)
        self.is_official &= unit.is_official

    def add(self, unit: Unit[Any], found: Scored) -> None:
        """Add a unit and its scores."""
        self.record(unit)
        self.add_scores(unit.name, unit.languages, unit.pairs, found)

    def add_scores(self, name: str, languages: tuple[str, str], pairs: int, found: Scored) -> None:
        """Add scores of that name, languages and number of pairs; see ``Unit``."""
        self.subsets.append(
            SubsetScores(name=name, languages=languages, pairs=pairs, scores=found.scores)
        )
        self.notes += [f"{name}: {note}" for note in found.notes]
        if found.items is not None:
            self.items[name] = found.items
        if found.examples is not None:
            self.examples[name] = found.examples
        if found.repeats is not None:
            self.repeats[name] = found.repeats


@dataclass(frozen=True, kw_only=True)
class Task(CheckedSettings, abc.ABC):
    """An evaluation protocol, in its own file in ``evaluation/tasks``; its fields are its options.

    A task with an option ``languages`` is a ``LanguageTask``. An option may only have the values
    that its type lists (``Literal``) or bounds (``Annotated[int, AtLeast(1)]``). For the metadata
    of an option, see ``label`` for ``{"words": ...}`` and ``options`` for ``{"output": True}``.

    Attributes:
        name: in the registry.
        version: raised whenever a number could change.
        main_metric: the metric a table shows.
        higher_is_better: false for error rates.
        shown: see ``TaskResult``.
        lower_is_better: see ``TaskResult``.
        folders: usual names of the data's folder.
        reader: see ``files``.
        expected: description of the expected files, for the error if they are missing.
        published: the key of the data's digests in ``data/evaluation_sets.json``, if they are
            known.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str]
    higher_is_better: ClassVar[bool] = True
    shown: ClassVar[Sequence[str]] = ()
    lower_is_better: ClassVar[Sequence[str]] = ()
    folders: ClassVar[Sequence[str]]
    reader: ClassVar[Callable[[Path], Mapping[str, Any]]]
    expected: ClassVar[str]
    published: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, choices in _choices(kind).items():
            check_choice(name, getattr(self, name), choices)

    def evaluate(
        self, encoder: CachedEncoder, data: Path, *, progress: Progress = SILENT
    ) -> TaskResult:
        """Score an encoder.

        Args:
            encoder: the encoder to score.
            data: the data set's folder, or a folder that holds it under its usual name.
            progress: reports progress.

        Raises:
            DataError: files are missing, broken or misaligned, or a language is not among them.
        """
        start = time.perf_counter()
        found = self.run(encoder, self.find(data), progress)
        if self.published:
            found.revision = recognize(self.published, found.digests)
        # published data with additional scored texts are another test set
        revision = None if found.added else found.revision
        # computed after the revision is known, because a paper's groups exist only for the paper's
        # own data
        members = self.members(found)
        return TaskResult(
            task=self.result_name(found),
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=self.higher_is_better,
            dataset=self.dataset_name(found.folder),
            data_sha256=self.fingerprint(found),
            data_revision=revision,
            subsets=tuple(found.subsets),
            groups={group: self.means(group, chosen, found) for group, chosen in members.items()},
            members={group: _names(chosen) for group, chosen in members.items()},
            notes=tuple(found.notes),
            items=found.items,
            examples=found.examples,
            tables=found.tables,
            shown=tuple(self.shown),
            lower_is_better=tuple(self.lower_is_better),
            seconds=time.perf_counter() - start,
            **options(self),
        )

    # Attributes and methods that a task must define

    def files(self, folder: Path) -> Any:
        """Return the files that ``reader`` finds, by key; none if the folder has another layout."""
        reader = getattr(type(self), "reader", None)
        if reader is None:
            raise NotImplementedError(f"{type(self).__name__} must define reader, or files")
        return reader(folder)

    def units(self, folder: Path) -> Iterable[Unit[Any]]:
        """Read the units to be scored separately."""
        raise NotImplementedError(f"{type(self).__name__} must define units and score, or run")

    def score(self, encoder: CachedEncoder, unit: Unit[Any]) -> Scored:
        """Run the protocol on one unit."""
        raise NotImplementedError(f"{type(self).__name__} must define units and score, or run")

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Run the protocol on all of the data.

        Files are read before anything is embedded, so that broken ones are reported at once.
        """
        return self.score_units(encoder, folder, list(self.units(folder)), progress)

    # Methods that a task may override

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's own; only then is its plain name used."""
        return found.revision is not None

    def label(self) -> str:
        """Return the name of a result on the protocol's own data.

        The name contains the options that change the protocol. Such an option has
        ``{"words": "train{}"}`` in its metadata: the format of a value that is not the default.
        """
        parts = [self.name]
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            if "words" in option.metadata and value != option.default:
                shown = "+".join(value) if isinstance(value, tuple | list) else value
                parts.append(option.metadata["words"].format(shown))
        return "_".join(parts)

    def result_name(self, found: Findings) -> str:
        """Return the result's name; for other data, the folder's name is appended."""
        if self.is_protocol(found):
            return self.label()
        return f"{self.label()}_{found.folder.resolve().name}"

    def dataset_name(self, folder: Path) -> str:
        """Return the name of the data."""
        return folder.resolve().name

    def fingerprint(self, found: Findings) -> str:
        """Return the SHA-256 of the scored data."""
        contents = [list(found.digests), list(found.digests.values())]
        # only if texts were added, so that the digests of other results stay the same
        if found.added:
            contents.append(found.added)
        return content_sha256(contents)

    def members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the groups that means are taken over; the name of a group contains its size."""
        return {f"all_{len(found.subsets)}": found.subsets}

    def means(
        self, group: str, subsets: Sequence[SubsetScores], found: Findings
    ) -> dict[str, float]:
        """Compute the scores of a group."""
        return mean_scores(subsets)

    # Methods that tasks call

    def find(self, data: Path) -> Path:
        """Return the data set's folder: ``data`` itself, or one of its usual names below it.

        Raises:
            DataError: there is none.
        """
        return find_folder(data, self.folders, self.files, self.expected)

    def score_units(
        self, encoder: CachedEncoder, folder: Path, units: Sequence[Unit[Any]], progress: Progress
    ) -> Findings:
        """Score units one after the other."""
        # all units are read by now, so the total is known
        progress.start(sum(unit.sentences for unit in units), "sentences", self.name)
        found = Findings(folder=folder)
        for unit in units:
            progress.note(unit.name)
            found.add(unit, self.score(encoder, unit))
            progress.advance(unit.sentences)
        return found


@dataclass(frozen=True, kw_only=True)
class LanguageTask(Task):
    """A protocol on any selection of its data by language.

    Attributes:
        languages: languages, pairs or groups of them to score; all that have a file by default.
        paper_groups: name -> languages or sets that papers average over.
    """

    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {}

    languages: Sequence[str] | None = None

    def units(self, folder: Path) -> Iterable[Unit[Any]]:
        """Yield the chosen files, by default one unit each."""
        files = self.files(folder)
        for key in self.chosen(files, folder):
            yield self.unit(key, files[key], folder)

    def unit(self, key: str, file: Any, folder: Path) -> Unit[Any]:
        """Read one of the ``files``; ``folder`` is named in errors."""
        raise NotImplementedError(f"{type(self).__name__} must define unit, or units")

    def parts(self, data: Path) -> list[str]:
        """Return the parts that ``languages`` selects.

        Each part may be scored separately; see ``evaluation.suite``.

        Raises:
            LanguageAbsentError: a language is not among the data.
        """
        folder = self.find(data)
        return self.chosen(self.files(folder), folder)

    def chosen(self, files: Mapping[str, Any], folder: Path) -> list[str]:
        """Return the keys of the files to score."""
        return choose_languages(self.languages, self.source_languages(files), {}, folder)

    def members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the group of all subsets, and the groups of papers."""
        return {**super().members(found), **self.paper_members(found)}

    def paper_members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the scored groups that papers average over, here by language."""
        return members_by_language(found.subsets, self.paper_groups)

    def source_languages(self, files: Mapping[str, Any]) -> Mapping[str, str]:
        """Return each file's key -> its source language.

        The key is the language if languages distinguish the files.
        """
        return {key: key for key in files}

    def embed(self, encoder: CachedEncoder, data: Path) -> None:
        """Embed the data of ``languages``, by default by scoring them; see ``evaluation.suite``."""
        self.evaluate(encoder, data)


@dataclass(frozen=True, kw_only=True)
class StreamedTask(LanguageTask):
    """A protocol on large data: each unit is read just before it is scored, to save memory."""

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Run the protocol; estimate the total from the mean length of the units that were read."""
        found = Findings(folder=folder)
        count = len(self.parts(folder))
        done = 0
        for number, unit in enumerate(self.units(folder), 1):
            total = (done + unit.sentences) * count // number
            progress.start(total, "sentences", self.name, done=done)
            progress.note(unit.name)
            found.add(unit, self.score(encoder, unit))
            done += unit.sentences
            progress.advance(unit.sentences)
        return found


def options(task: Any) -> dict[str, Any]:
    """Return a task's ``settings``, and the names of the ``changed`` ones, for its result.

    A field with ``{"output": True}`` in its metadata (for example a folder) changes no number and
    is left out. A field with ``{"adds": True}`` only adds metrics: results that differ only in such
    a field are still compared.
    """
    # settings determine the name of the result file, and another output folder must not produce
    # another result
    fields = [field for field in dataclasses.fields(task) if not field.metadata.get("output")]
    settings = {field.name: getattr(task, field.name) for field in fields}
    changed = tuple(field.name for field in fields if settings[field.name] != field.default)
    # lists, as when read from JSON, so that a result equals its copy that is read from the file
    for name, value in settings.items():
        if isinstance(value, tuple):
            settings[name] = list(value)
    return {"settings": settings, "changed": changed}


@functools.cache
def _choices(kind: type[Task]) -> dict[str, tuple[str, ...]]:
    """Return the options whose type is a ``Literal`` of texts, with these texts."""
    choices: dict[str, tuple[str, ...]] = {}
    for base in reversed(kind.__mro__):
        try:
            hints: dict[str, Any] = inspect.get_annotations(base, eval_str=True)
        # names that a module imports only for type checkers
        except (NameError, AttributeError, TypeError):
            continue
        for name, hint in hints.items():
            choices.pop(name, None)
            if get_origin(hint) is Literal and isinstance(get_args(hint)[0], str):
                choices[name] = get_args(hint)
    return choices


def _names(subsets: Sequence[SubsetScores]) -> tuple[str, ...]:
    return tuple(subset.name for subset in subsets)
