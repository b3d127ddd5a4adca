"""Hugging Face data sets with a ``translation`` column, from the hub or from local files.

Needs the extra ``datasets``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    OTHER_LANGUAGES,
    SCORE,
    PairWithFields,
    TableChoice,
    TextPair,
    field_text,
    one_language_pair,
    pair_fields,
    requested_pair,
    typed_columns,
    written_codes,
)
from interlingua.corpus.formats.table_columns import ALL_FOUND
from interlingua.corpus.formats.tabular import pair_of_object
from interlingua.errors import DataError, import_extra
from interlingua.storage.files import atomic_write, stem_and_suffix

ROWS_WRITTEN = 10_000  # at a time
BUILDERS = {".parquet": "parquet", ".arrow": "arrow", ".json": "json", ".jsonl": "json"}


class HuggingFace:
    """``translation: {"de": ..., "en": ...}``, or the columns of ``tabular.Jsonl``.

    The path is a folder written by ``save_to_disk``, a folder of .parquet, .arrow or .json(l) files
    or one such file, or ``hf:NAME[:CONFIG[:SPLIT]]`` on the hub, e.g.
    ``hf:Helsinki-NLP/opus-100:de-en:train``. The split is ``train`` by default.

    Args:
        choice: columns, if the user names them.
    """

    def __init__(self, choice: TableChoice = ALL_FOUND) -> None:
        self.choice = choice

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream the rows; a row with an empty side counts as untranslated."""
        for number, row in enumerate(_rows(path), 1):
            translation = row.get("translation")
            if isinstance(translation, dict) and self.choice.columns is None:
                # Multilingual data has every language in every row, and null for a missing text.
                texts = {code: text for code, text in translation.items() if text is not None}
                if len(texts) < 2:
                    skipped["untranslated"] += 1
                    continue
                row = {**row, "translation": texts}
            try:
                pair = pair_of_object(row, source_language, target_language, self.choice.columns)
            except ValueError as error:
                bad.reject(DataError(f"row {number}: {error}", path=path), str(row))
                continue
            if isinstance(
                pair, PairWithFields
            ):  # every row has all columns, with null for a missing value
                kept = {name: value for name, value in pair.fields.items() if value is not None}
                pair = PairWithFields.of(pair, kept)
            requested = requested_pair(pair, source_language, target_language)
            if requested is None:
                skipped[OTHER_LANGUAGES] += 1
            else:
                yield requested

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write a .parquet file with a ``translation`` column, of one language pair.

        The score and other values of the pairs become further columns. A column has the type number
        or truth value if all its values have this type, otherwise it has the type text.
        """
        return self._write(pairs, path, None)

    def write_empty(self, path: str, head: TextPair) -> None:
        """Write a file without rows, for the languages of a pair."""
        self._write((), path, head)

    def _write(self, pairs: Iterable[TextPair], path: str, head: TextPair | None) -> int:
        """Write a file of some pairs, or of the languages of ``head`` if there is no pair."""
        if stem_and_suffix(path)[1] != ".parquet":
            raise DataError(
                "Hugging Face data is written as Parquet; use a file name that ends in .parquet",
                path=path,
            )
        arrow = _module("pyarrow")
        parquet = _module("pyarrow.parquet")
        columns, iterator = typed_columns(one_language_pair(pairs, path))
        rows = list(islice(iterator, ROWS_WRITTEN))
        head = rows[0] if rows else head
        if head is None:
            raise DataError(
                "there is no pair, so the languages of the columns are unknown; nothing is written",
                path=path,
            )
        names = written_codes(head)
        struct = arrow.struct([(name, arrow.string()) for name in names])
        types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64()}
        further = [(name, types.get(kind, arrow.string())) for name, kind in columns.items()]
        schema = arrow.schema([("translation", struct), *further])
        count = 0
        with atomic_write(path, "wb") as file, parquet.ParquetWriter(file, schema) as writer:
            while rows:
                texts = [{names[0]: pair.source, names[1]: pair.target} for pair in rows]
                table = {"translation": texts, **_further_values(rows, columns)}
                writer.write_table(arrow.table(table, schema=schema))
                count += len(rows)
                rows = list(islice(iterator, ROWS_WRITTEN))
        return count


def _further_values(rows: list[TextPair], columns: Mapping[str, type]) -> dict[str, list[Any]]:
    """Return the values of further columns, None if a pair has none."""
    found: dict[str, list[Any]] = {name: [] for name in columns}
    for pair in rows:
        values = {**pair_fields(pair), SCORE: pair.score}
        for name, kind in columns.items():
            value = values.get(name)
            if kind is str and value is not None:
                value = field_text(value)
            found[name].append(value)
    return found


def _rows(path: str) -> Iterator[dict[str, Any]]:
    datasets = _module("datasets")
    try:
        yield from _open(datasets, path)
    except DataError:
        raise
    except Exception as error:
        # The library raises its own and its backends' exceptions, of a dozen kinds.
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        raise DataError(
            f"cannot be read as a data set ({reason}); check the path", path=path
        ) from error


def _open(datasets: Any, path: str) -> Any:
    if path.startswith("hf:"):
        name, config, split = (*path[3:].split(":"), "", "")[:3]  # the last two may be left out
        return datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
    if (Path(path) / "dataset_dict.json").is_file():
        return datasets.load_from_disk(path)["train"]
    if (Path(path) / "state.json").is_file():
        return datasets.load_from_disk(path)
    files = [Path(path)]
    if Path(path).is_dir():
        files = sorted(file for file in Path(path).rglob("*") if file.is_file())
    builders = [BUILDERS.get(stem_and_suffix(file)[1]) for file in files]
    kinds = {builder for builder in builders if builder is not None}
    if len(kinds) != 1:
        raise DataError(
            "expected files of one format: .parquet, .arrow, .json or .jsonl; move other files"
            " out of the folder",
            path=path,
        )
    # A folder may hold other files too, such as a README.
    chosen = [str(file) for file, builder in zip(files, builders, strict=True) if builder]
    return datasets.load_dataset(kinds.pop(), data_files=chosen, split="train", streaming=True)


def _module(name: str) -> Any:
    return import_extra(name, package="datasets", extra="datasets")
