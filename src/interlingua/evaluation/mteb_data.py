"""Local data for mteb's tasks, so that they run without the hub.

The data are the sets that other tasks read, or local clones of mteb's own.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.corpus.formats.evaluation_sets import pair_files, read_pair_file
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import find_folder, pair_files_by_key
from interlingua.evaluation.data.similarity import JudgedPairs
from interlingua.evaluation.tasks.similarity.similarity import SimilarityTask
from interlingua.evaluation.tasks.similarity.sts import STS17, Sick, STS12to16, STSBenchmark
from interlingua.evaluation.tasks.translation.bucc import BuccMTEB

ColumnValues = dict[str, Any]
"""Values of one subset: column -> values."""
CLONES = "mteb"
"""The folder of local clones of mteb's data sets, each under the last part of its name on the
hub."""
CREATED: Mapping[str, tuple[SimilarityTask, str]] = {
    "STSBenchmark": (STSBenchmark(languages=["en"]), ""),
    "SICK-R": (Sick(splits=("train", "dev", "test")), ""),
    **{f"STS{year}": (STS12to16(), f"20{year}.") for year in range(12, 17)},
}


def load_data(task: Any, data: Path) -> str | None:
    """Fill a task of mteb with its data.

    The data come from the folders that other tasks read, a clone below ``mteb/``, mteb's own cache,
    or the hub.

    Args:
        task: its ``dataset`` is filled.
        data: the folder of all data sets.

    Returns:
        The local folder of the data, or None if they are not local.

    Raises:
        DataError: none of these places has the data, or our own files are broken.
    """
    name = task.metadata.name
    if name in READERS and (folder := _folder(data, READERS[name])):
        subsets = READERS[name].read(folder)
        if subsets:
            fill_task(task, subsets)
            return folder.name
    path = str(task.metadata.dataset["path"])
    clone = data / CLONES / path.rpartition("/")[2]
    if clone.is_dir():
        # mteb passes the path to datasets.load_dataset, which reads a folder in the same way as a
        # data set on the hub
        dataset = {**task.metadata.dataset, "path": str(clone)}
        task.metadata = task.metadata.model_copy(update={"dataset": dataset})
    try:
        task.load_data()
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        places = f"not found in {clone} nor in the Hugging Face cache"
        raise DataError(
            f"no data for {name}: {places}, and the hub failed ({type(error).__name__}: {reason})"
        ) from error
    return clone.name if clone.is_dir() else None


def fill_task(task: Any, subsets: Mapping[str, ColumnValues]) -> None:
    """Fill a task of mteb with local data; the task runs only on these.

    Args:
        task: its subsets are restricted to those in ``subsets``.
        subsets: mteb's name of a subset -> its columns; a name may have its two languages in the
            opposite order, if the two columns of texts are in that order too.
    """
    from datasets import Dataset

    split = task.eval_splits[0]
    task.dataset = {}
    for key, columns in subsets.items():
        turned = "-".join(reversed(key.split("-")))
        if key not in task.metadata.hf_subsets and turned in task.metadata.hf_subsets:
            # fr-en here, en-fr in mteb: the columns of texts change places with the languages
            key = turned
            columns = {
                **columns,
                "sentence1": columns["sentence2"],
                "sentence2": columns["sentence1"],
            }
        if key not in task.metadata.hf_subsets:
            continue
        # BUCC's columns are of unequal lengths, which a Dataset can't hold
        if "gold" in columns:
            task.dataset[key] = {split: columns}
        else:
            task.dataset[key] = {split: Dataset.from_dict(columns)}
    # mteb skips its download where the data are marked as loaded
    task.hf_subsets = list(task.dataset)
    task.data_loaded = True


class Reader(NamedTuple):
    """The reader of one of our sets for a task of mteb.

    Attributes:
        folders: usual names of its folder.
        files: returns the files of a folder.
        read: returns subsets for ``fill_task``; none if the folder has no subsets of the task.
    """

    folders: Sequence[str]
    files: Callable[[Path], object]
    read: Callable[[Path], dict[str, ColumnValues]]


def _english_subsets(task: SimilarityTask, prefix: str, folder: Path) -> dict[str, ColumnValues]:
    """Return the sets that mteb treats as one, or nothing if there are none."""
    sets = task.read(task.wanted(task.files(folder), folder), folder)
    parts = [pairs for key, (_, pairs) in sets.items() if key.startswith(prefix)]
    return {"default": _columns(parts)} if parts else {}


def _sts17_subsets(folder: Path) -> dict[str, ColumnValues]:
    task = STS17()
    files = task.wanted(task.files(folder), folder)
    subsets = {}
    for key, (_, pairs) in task.read(files, folder).items():
        subsets["-".join(files[key].languages)] = _columns([pairs])
    return subsets


def _tatoeba_subsets(folder: Path) -> dict[str, ColumnValues]:
    subsets = {}
    for file in pair_files_by_key(folder).values():
        source, target = read_pair_file(file)
        subsets[file.name] = {"sentence1": source, "sentence2": target}
    return subsets


def _bucc_subsets(folder: Path) -> dict[str, ColumnValues]:
    """Return the subsets as mteb transforms them: only the sources of gold pairs are kept."""
    task = BuccMTEB()
    subsets = {}
    for key in task.parts(folder):
        read = task.read(key, folder).data
        # one query for each gold pair, so a source of two pairs occurs twice
        queries = [read.source.texts[row] for row, _ in read.gold]
        subsets[key] = {"sentence1": queries, "sentence2": read.target.texts, "gold": read.gold}
    return subsets


READERS: dict[str, Reader] = {
    "STS17": Reader(STS17.folders, STS17().files, _sts17_subsets),
    "Tatoeba": Reader(("tatoeba_laser", "tatoeba"), pair_files, _tatoeba_subsets),
    "BUCC": Reader(BuccMTEB.folders, BuccMTEB().files, _bucc_subsets),
    **{
        name: Reader(task.folders, task.files, functools.partial(_english_subsets, task, prefix))
        for name, (task, prefix) in CREATED.items()
    },
}


def _folder(data: Path, reader: Reader) -> Path | None:
    with contextlib.suppress(DataError):
        return find_folder(data, reader.folders, reader.files, "")
    return None


def _columns(parts: Iterable[JudgedPairs]) -> ColumnValues:
    columns: ColumnValues = {"sentence1": [], "sentence2": [], "score": []}
    for pairs in parts:
        columns["sentence1"] += pairs.first
        columns["sentence2"] += pairs.second
        columns["score"] += pairs.gold
    return columns
