"""Sentences altered on purpose, in the layout of xsim++.

The layout is that of LASER's ``tasks/xsimplusplus`` (Chen et al. 2023):
``<lang>_augmented.devtest`` has an altered sentence per line, and ``<lang>_errtype.devtest.json``
has the original and the kind of alteration of each:
``{"altered": {"src": "original", "errtype": "kind"}}``. Both are in the folder of the line-aligned
files or, as in LASER, in a folder next to it: ``devtest_augmented`` for ``devtest``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from interlingua.config.languages import resolve_language
from interlingua.corpus.formats.evaluation_sets import read_evaluation_lines
from interlingua.corpus.negatives.hard_negatives import Altered
from interlingua.errors import DataError
from interlingua.storage.files import atomic_write
from interlingua.storage.json_text import parse_json, read_json_text

MISALIGNED = "misaligned"
"""The kind of an altered sentence whose kind is unknown; also the kind of an error in which the
retrieved sentence is not an altered form of the right one."""
GENERATED = "generated_"
"""Prefix of the kinds that ``corpus.negatives.hard_negatives`` made, unlike LASER's."""
_FILE = re.compile(r"([A-Za-z]{2,3}(?:_[A-Za-z]{4})?)_augmented\.(txt|devtest|dev)")


def altered_file(folder: Path, language: str) -> Path | None:
    """Return the file of altered sentences of a language for a folder of line-aligned files.

    Args:
        folder: of the line-aligned files.
        language: any code.
    """
    code = resolve_language(language).code
    absolute = folder.resolve()  # "." has no name of its own
    places = [folder, absolute.with_name(f"{absolute.name}_augmented")]
    if absolute.name == "devtest":  # as in FLORES' own archive
        places += [parent / "flores200_devtest_augmented" for parent in absolute.parents[:2]]
    for place in places:
        if not place.is_dir():
            continue
        for path in sorted(place.iterdir()):
            if (match := _FILE.fullmatch(path.name)) and resolve_language(match[1]).code == code:
                return path
    return None


def read_altered(path: Path) -> list[Altered]:
    """Read the altered sentences of a file, in order.

    Raises:
        DataError: the file is empty or has a blank line, the JSON file next to it is missing or has
            another form, or it contains none of the lines.
    """
    texts = read_evaluation_lines(path)
    table = _read_table(path)
    # A line that the table does not know is kept, as misaligned.
    entries = [table.get(text.strip(), ("", MISALIGNED)) for text in texts]
    if not any(original for original, _ in entries):
        raise DataError(
            f"{_table_path(path).name} contains no line of this file; use two files of the same"
            " set",
            path=path,
        )
    return [
        Altered(text, original, kind) for text, (original, kind) in zip(texts, entries, strict=True)
    ]


def write_altered(folder: Path, language: str, altered: Iterable[Altered]) -> Path:
    """Write the sentences and their JSON table.

    Args:
        folder: the folder to write to; it is created.
        language: ``eng_Latn``.
        altered: the sentences; no text may occur twice.

    Returns:
        The file of sentences.
    """
    path = folder / f"{language}_augmented.devtest"
    # Both files grow sentence by sentence: the table is written as JSON by hand, since it would
    # have to be in memory whole for json.dump.
    with atomic_write(path) as lines, atomic_write(_table_path(path)) as table:
        start = "{\n"
        for text, original, kind in altered:
            lines.write(f"{text}\n")
            entry = json.dumps({"src": original, "errtype": kind}, ensure_ascii=False)
            table.write(f"{start}{json.dumps(text, ensure_ascii=False)}: {entry}")
            start = ",\n"
        table.write("{}\n" if start == "{\n" else "\n}\n")
    return path


def _table_path(path: Path) -> Path:
    return path.with_name(f"{path.name.replace('_augmented.', '_errtype.', 1)}.json")


def _read_table(path: Path) -> dict[str, tuple[str, str]]:
    source = _table_path(path)
    try:
        content: Any = parse_json(read_json_text(source))
        return {
            text.strip(): (entry["src"].strip(), str(entry["errtype"]))
            for text, entry in content.items()
        }
    except OSError as error:
        message = (
            f"{error.strerror or error}; this file maps each line of {path.name} to its"
            " original sentence"
        )
        raise DataError(message, path=source) from error
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        message = (
            'expected {"altered": {"src": "original", "errtype": "kind"}, ...}, found another form'
        )
        raise DataError(f"{message} ({type(error).__name__}: {error})", path=source) from error
