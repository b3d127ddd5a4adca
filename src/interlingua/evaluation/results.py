"""Results on disk, in mteb's layout: ``results/{model}/{revision}/{Task}.json``.

Scores are fractions, never percent.

A result and the larger files that belong to it (items, wrong neighbors) appear together, even if
the process is killed at any moment. The larger files are written first, under names that end with
``.next``. The result contains the digest of each of these files. Once the result is written, the
files are valid, and then get their final names. A reader checks the files with both names for the
digest in the result, so it never reads scores without their items, or with items of another run.

A *table of results* (``.jsonl``) holds many results in one file, one a line. It has all scores and
no items, so it can't show which differences from a baseline are significant.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from interlingua.errors import DataError
from interlingua.evaluation.examples import examples_path, read_examples, write_examples
from interlingua.evaluation.scores import Items, SubsetScores, TaskResult
from interlingua.storage.arrays import arrays_of
from interlingua.storage.files import PathLike, atomic_write, sha256_file
from interlingua.storage.json_text import json_lines, parse_json, read_json_text
from interlingua.storage.locks import exclusive

ANALYSIS_SUFFIX = ".analysis.json"  # of the files of `interlingua analyse` in the same folders
T = TypeVar("T")
TABLE_SUFFIX = ".jsonl"
"""Suffix of tables of results."""
ANALYSIS_KEY = "analysis"
"""Key that analyses have, but results do not."""
OWN = "interlingua"  # the key of values for which mteb's layout has no place
_OWN_FIELDS = (
    "version", "main_metric", "higher_is_better", "dataset", "data_sha256", "data_revision",
    "settings", "changed", "groups", "provenance", "members", "notes", "tables", "shown",
    "lower_is_better",
)  # fmt: skip
_UNUSED_IN_TABLES = ("tables", "members")
"""Fields that tables of results leave out: no comparison shows ``tables``, and ``members`` is only
needed for significance tests, which require items."""
_FILES = "files"
"""Digests of the files that belong to a result."""
_LATER_FIELDS: dict[str, Any] = {
    "members": {},
    "notes": (),
    "tables": {},
    "shown": (),
    "lower_is_better": (),
}  # files of earlier versions don't have them
NOT_OF_THE_KIND = (ValueError, KeyError, TypeError, AttributeError, StopIteration)
"""Errors of reading JSON that is not a result or an analysis."""
Write = Callable[[Path], None]
"""Function that writes the complete file at a path."""


def write_result(result: TaskResult, folder: PathLike) -> Path:
    """Write a result and the files that belong to it, all at once.

    Args:
        result: with its provenance.
        folder: gets ``results/{model}/{revision}/{Task}.json``. The revision includes a digest of
            settings that are not the defaults (prompt, pooling, languages, ...). The file's name
            includes a digest of the data if they are not a published set, or if the existing file
            is a result on other data. So no result overwrites another.

    Returns:
        The file.
    """
    path = _free_path(result, Path(folder))
    if result.mteb:
        _write_mteb(result, path, Path(folder))

    def render(digests: Mapping[str, str]) -> str:
        content = result_to_json(result)
        content[OWN][_FILES] = digests
        return json.dumps(content, ensure_ascii=False, indent=2) + "\n"

    def write_items(place: Path) -> None:
        with atomic_write(place, "wb") as file:
            np.savez_compressed(file, **_to_arrays(result.items))

    def write_wrong(place: Path) -> None:
        write_examples(place, result.examples)

    # None removes a file of an earlier run for which this run has no content
    files: dict[Path, Write | None] = {items_path(path): None, examples_path(path): None}
    if result.items:
        files[items_path(path)] = write_items
    if any(result.examples.values()):
        files[examples_path(path)] = write_wrong
    write_together(path, render, files)
    return path


def _free_path(result: TaskResult, folder: Path) -> Path:
    """Return the path of the result; another name if a result on other data has the usual one."""
    path = result_path(result, folder)
    try:
        existing = parse_json(read_json_text(path))[OWN]["data_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        # there is no file, or a file that is not a result and may be overwritten
        return path
    if existing == result.data_sha256:
        return path
    return path.with_stem(f"{path.stem}-{result.data_sha256[:8]}")


def items_path(path: Path) -> Path:
    """Return the path of the values of single items: ``{Task}.items.npz`` next to the result."""
    return path.with_suffix(".items.npz")


def result_path(result: TaskResult, folder: Path) -> Path:
    """Return the path of a result below ``folder``."""
    model: Any = result.provenance["model"]
    overrides = [f"{option}={result.settings[option]}" for option in result.changed]
    overrides += model["overrides"]
    revision = [model["revision"]]
    if overrides:
        revision.append(hashlib.sha256("\n".join(overrides).encode()).hexdigest()[:8])
    name = [result.task]
    # data that are not a published set need a digest, because the folder of every corpus has the
    # same name, "heldout"
    if not result.data_revision:
        name.append(result.data_sha256[:8])
    parts = ["-".join(filter(None, part)) for part in (revision, name)]
    return model_folder(model["name"], folder) / parts[0] / f"{parts[1]}.json"


def model_folder(name: str, folder: Path) -> Path:
    """Return the folder of all results of a model below ``folder``."""
    return folder / "results" / re.sub(r"[^\w.+-]", "_", name.strip("/").replace("/", "__"))


def result_to_json(result: TaskResult) -> dict[str, Any]:
    """Return the file's content, a ``TaskResult`` of mteb with one more key."""

    def scores_of(subset: SubsetScores) -> dict[str, Any]:
        return {
            **subset.scores,
            "main_score": subset.scores[result.main_metric],
            "pairs": subset.pairs,
            "hf_subset": subset.name,
            "languages": [code.replace("_", "-") for code in subset.languages],
        }

    return {
        "dataset_revision": result.data_revision or result.data_sha256[:12],
        "task_name": result.task,
        "mteb_version": None,
        "scores": {"test": [scores_of(subset) for subset in result.subsets]},
        "evaluation_time": result.seconds,
        "kg_co2_emissions": None,
        OWN: {name: getattr(result, name) for name in _OWN_FIELDS},
    }


def write_table(results: Iterable[TaskResult], path: PathLike) -> None:
    """Write results to one file; see ``result_table_text``."""
    with atomic_write(path) as file:
        file.write(result_table_text(results))


def result_table_text(results: Iterable[TaskResult]) -> str:
    """Return a table of results: a line of JSON per result, small enough for a repository.

    A line has the fields of a result file without values of single items. Commands name paths
    relative to the working directory or to the home directory.
    """
    return "".join(_table_line(result) for result in results)


def _table_line(result: TaskResult) -> str:
    content = result_to_json(result)
    own = {key: value for key, value in content[OWN].items() if key not in _UNUSED_IN_TABLES}
    content[OWN] = own | {"provenance": without_folders(own["provenance"])}
    return result_line(content)


def without_folders(provenance: Mapping[str, object]) -> dict[str, object]:
    """Return the provenance without this machine's folders in the command."""
    shown = dict(provenance)
    if "command" in shown:
        command = str(shown["command"]).replace(f"{Path.cwd()}/", "")
        shown["command"] = command.replace(f"{Path.home()}/", "~/")
    return shown


def result_line(content: Mapping[str, Any]) -> str:
    """Return a line of a table of results."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def read_results(
    paths: Iterable[PathLike], *, examples: bool = False, needed: bool = True
) -> list[TaskResult]:
    """Read result files, tables of results, and every result file below a folder.

    Args:
        paths: of files and folders.
        examples: see ``read_result``.
        needed: whether there must be a result, and not only analyses.

    Raises:
        DataError: a path is missing, a file is not a result, a folder holds neither results nor
            analyses, or there is no result although one is needed.
    """
    folders = [Path(path) for path in paths]
    files = [file for path in folders for file in _result_files(path)]
    results: list[TaskResult] = []
    for file in files:
        if file.suffix == TABLE_SUFFIX:
            results += read_table(
                file, lambda record: _from_json(record, None), analyses=False, kind="a result"
            )
        else:
            results.append(read_result(file, examples=examples))
    if not results and needed:
        raise DataError(
            "no result files found; run `interlingua evaluate`",
            path=", ".join(map(str, folders)) or None,
        )
    return results


def read_table(
    path: Path, read: Callable[[dict[str, Any]], T], *, analyses: bool, kind: str
) -> Iterator[T]:
    """Yield the records of a table of results, one per line.

    Args:
        path: of the table, which may hold results and analyses.
        read: makes a record of a line's content.
        analyses: whether to read the analyses and not the results.
        kind: name of the records, for errors.

    Raises:
        DataError: the table is missing or empty, or a line is not of the kind.
    """
    is_empty = True
    for number, record in json_lines(path):
        is_empty = False
        if (ANALYSIS_KEY in record) != analyses:
            continue
        try:
            yield read(record)
        except NOT_OF_THE_KIND as error:
            raise DataError(
                f"not {kind} ({type(error).__name__}: {error}); create the table with: interlingua"
                " compare RESULTS -o TABLE.jsonl",
                path=path,
                line=number,
            ) from error
    if is_empty:
        raise DataError("the table contains no results; remove it", path=path)


def read_result(path: PathLike, *, examples: bool = False) -> TaskResult:
    """Read one result file, ours or mteb's own.

    Args:
        path: of the file.
        examples: whether to read the wrong neighbors too, from the file next to it, which may have
            several megabytes.

    Raises:
        DataError: it is missing, or is not such a file.
    """
    try:
        content = parse_json(read_json_text(path))
        result = _from_json(content, Path(path))
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path", path=path
        ) from error
    except NOT_OF_THE_KIND as error:
        raise DataError(
            f"not a result file ({type(error).__name__}: {error}); run `interlingua evaluate`"
            " again",
            path=path,
        ) from error
    if not examples:
        return result
    file = find_sidecar(Path(path), examples_path(Path(path)), _digests(content))
    if file is None:
        return dataclasses.replace(result, examples={})
    return dataclasses.replace(result, examples=read_examples(file))


def _write_mteb(result: TaskResult, path: Path, folder: Path) -> None:
    """Write mteb's own result to where ``mteb.ResultCache(folder / "mteb")`` expects it."""
    target = folder / "mteb" / path.relative_to(folder).parent
    model: Any = result.provenance["model"]
    found = result.mteb["result"]
    # the folder's name and not only the model's revision: it carries a digest of the settings
    meta = {**result.mteb["model_meta"], "name": model["name"], "revision": target.name}
    for name, content in ((found["task_name"], found), ("model_meta", meta)):
        with atomic_write(target / f"{name}.json") as file:
            file.write(json.dumps(content, ensure_ascii=False, indent=2, default=str) + "\n")


def _from_json(content: dict[str, Any], path: Path | None) -> TaskResult:
    """Return the result of a file; ``path`` is None for a line of a table, which has no items."""
    own = content.get(OWN)
    entries = next(iter(content["scores"].values()))
    if not entries:
        raise ValueError("no scores")
    subsets = tuple(_subset(entry, keep_main_score=own is None) for entry in entries)
    if own is None:
        # the folders of mteb's own file name the model; a line of a table has none
        if path is None:
            raise KeyError(OWN)
        own = _fields_of_mteb(content, subsets, path)
    # a field that every version wrote must be there
    fields = _LATER_FIELDS | {
        name: own[name] for name in _OWN_FIELDS if name not in _LATER_FIELDS or name in own
    }
    # JSON only has lists, where a result holds tuples
    for name in ("changed", "notes", "shown", "lower_is_better"):
        fields[name] = tuple(fields[name])
    fields["members"] = {
        name: tuple(subset_names) for name, subset_names in fields["members"].items()
    }
    items = None
    if path is not None:
        items = find_sidecar(path, items_path(path), _digests(content))
    return TaskResult(
        task=content["task_name"],
        subsets=subsets,
        seconds=content.get("evaluation_time") or 0.0,
        items=_read_items(items),
        **fields,
    )


def _fields_of_mteb(
    content: Mapping[str, Any], subsets: Sequence[SubsetScores], path: Path
) -> dict[str, Any]:
    """Return our fields for a file of mteb, as far as it has them; its folders name the model."""
    mean = sum(subset.scores["main_score"] for subset in subsets) / len(subsets)
    model = {"name": path.parent.parent.name, "revision": path.parent.name, "overrides": []}
    return {
        "version": f"mteb {content['mteb_version']}",
        "main_metric": "main_score",
        "higher_is_better": True,
        "dataset": content["task_name"],
        "data_sha256": "",
        "data_revision": content["dataset_revision"],
        "settings": {},
        "changed": [],
        "groups": {f"all_{len(subsets)}": {"main_score": mean}},
        "provenance": {"model": model},
    }


def _to_arrays(items: Mapping[str, Items]) -> dict[str, Any]:
    """Return the arrays of an .npz file, ``subset/field``; ``_read_items`` is the inverse."""
    arrays = {}
    for subset, kept in items.items():
        arrays[f"{subset}/values"] = np.asarray(kept.values, dtype=np.float64)
        if kept.gold is not None:
            arrays[f"{subset}/gold"] = np.asarray(kept.gold)
        if kept.weights is not None:
            arrays[f"{subset}/weights"] = np.asarray(kept.weights, dtype=np.float64)
    return arrays


def _digests(content: Mapping[str, Any]) -> Any:
    """Return the digests of the result's files; None for files of earlier versions and of mteb."""
    own = content.get(OWN)
    if not isinstance(own, dict):
        return None
    return own.get(_FILES)


def _read_items(path: Path | None) -> dict[str, Items]:
    if path is None:
        return {}
    arrays = dict(arrays_of(path))
    items = {}
    for key, values in arrays.items():
        if key.endswith("/values"):
            subset = key.removesuffix("/values")
            gold = arrays.get(f"{subset}/gold")
            items[subset] = Items(values, gold, arrays.get(f"{subset}/weights"))
    return items


def _subset(entry: dict[str, Any], *, keep_main_score: bool) -> SubsetScores:
    # a single code if both sides are of one language, as in mteb
    source, *others = (code.replace("-", "_") for code in entry["languages"])
    target = others[0] if others else source
    numbers = {name: value for name, value in entry.items() if isinstance(value, int | float)}
    # ``main_score`` only repeats the main metric
    if not keep_main_score:
        del numbers["main_score"]
    pairs = int(numbers.pop("pairs", 0))
    return SubsetScores(
        name=entry["hf_subset"], languages=(source, target), pairs=pairs, scores=numbers
    )


def _result_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    others = ("model_meta.json", ANALYSIS_SUFFIX)
    files = sorted(file for file in path.rglob("*.json") if not file.name.endswith(others))
    if not files and next(path.rglob(f"*{ANALYSIS_SUFFIX}"), None) is None:
        remedy = "run `interlingua evaluate`"
        if next(path.rglob(f"*{TABLE_SUFFIX}"), None) is not None:
            remedy = f"pass the table of results ({TABLE_SUFFIX}) itself"
        raise DataError(f"the folder contains no result files; {remedy}", path=path)
    return files


def write_together(
    path: Path, render: Callable[[dict[str, str]], str], sidecars: Mapping[Path, Write | None]
) -> None:
    """Write a result and all files that belong to it.

    Args:
        path: of the result.
        render: returns the content of the result. Its argument maps the end of each file's name to
            the file's digest.
        sidecars: path -> function that writes it; if None, an existing file is removed.
    """
    with exclusive(
        path.parent, remedy="use another --output", name=f".{path.stem}.lock", wait=True
    ):
        # 1. write the larger files, under temporary names that no result refers to yet
        digests = {}
        for sidecar, write in sidecars.items():
            if write is not None:
                write(_next_name(sidecar))
                digests[_key_of(path, sidecar)] = sha256_file(_next_name(sidecar))
        # 2. write the result with their digests: from this moment on, all files are valid
        with atomic_write(path) as file:
            file.write(render(digests))
        # 3. give the files their usual names, which a reader does not need
        for sidecar, write in sidecars.items():
            if write is None:
                sidecar.unlink(missing_ok=True)
                _next_name(sidecar).unlink(missing_ok=True)
            else:
                _next_name(sidecar).replace(sidecar)


def find_sidecar(path: Path, sidecar: Path, digests: Any) -> Path | None:
    """Return the file that belongs to a result, or None if there is none.

    Args:
        path: of the result.
        sidecar: the usual name of the file.
        digests: those of the result; empty in results of earlier versions, which have the file
            under its usual name.

    Raises:
        DataError: the existing file is not the one that the result was written with.
    """
    existing = [file for file in (sidecar, _next_name(sidecar)) if file.exists()]
    # a result of an earlier version names no digests
    if not isinstance(digests, Mapping):
        return sidecar if sidecar in existing else None
    expected = digests.get(_key_of(path, sidecar))
    if expected is None or not existing:
        return None
    for file in existing:
        if sha256_file(file) == expected:
            return file
    raise DataError(
        "the file does not belong to the current result; run `interlingua evaluate` again",
        path=sidecar,
    )


def _next_name(sidecar: Path) -> Path:
    return sidecar.with_name(f"{sidecar.name}.next")


def _key_of(path: Path, sidecar: Path) -> str:
    """Return ``items.npz`` without the result's name, so that a copy may have another name."""
    return sidecar.name.removeprefix(f"{path.stem}.")
