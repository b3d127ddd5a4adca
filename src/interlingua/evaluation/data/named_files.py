"""Line-aligned files of the user's own, named after their language in any way.

``German.txt``, ``corpus.de``, ``German.csv`` with a column ``text``.
"""

from __future__ import annotations

from pathlib import Path

from interlingua.config.languages import find_code
from interlingua.corpus.formats.bitext import uncompressed_name
from interlingua.corpus.formats.evaluation_sets import one_each
from interlingua.corpus.formats.sentence_table import is_table
from interlingua.errors import DataError
from interlingua.storage.files import files_in


def find_named_files(folder: Path, *, tables: bool = False) -> dict[str, Path]:
    """Return the ``.txt`` files of a folder that are named by a language code or name.

    For example ``German.txt`` or ``pt-BR.txt``.

    Args:
        folder: of the files.
        tables: return tables instead, for example ``German.csv`` or ``pt-BR.xlsx``.

    Raises:
        DataError: two files are of one language.
    """
    found = []
    for path in files_in(folder):
        language, _, ending = uncompressed_name(path.name).rpartition(".")
        is_wanted = is_table(path) if tables else ending == "txt"
        if is_wanted and find_code(language):
            found.append((language, path))
    return one_each(found)


def suffixed_files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder with a language suffix, ``corpus.de`` and ``corpus.en``.

    Return none if there is only one such file.

    Raises:
        DataError: two files are of one language, or they are parts of several texts (``dev.de``
            next to ``test.de``).
    """
    found = []
    texts = set()
    for path in files_in(folder):
        text, _, language = uncompressed_name(path.name).rpartition(".")
        if text and find_code(language):
            found.append((language, path))
            texts.add(text)
    if len(found) < 2:  # a text in one language is aligned with nothing
        return {}
    if len(texts) > 1:
        several = ", ".join(f"{text}.*" for text in sorted(texts)[:4])
        raise DataError(
            f"the folder contains files of {len(texts)} texts ({several}); move each text to its"
            " own folder",
            path=folder,
        )
    return one_each(found)
