"""Files of NTREX-128, line-aligned.

``newstest2019-src.eng.txt`` and ``newstest2019-ref.<lang>.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from interlingua.config.languages import parse
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import ENGLISH, matching_files

NTREX_FILE = re.compile(
    r"newstest2019-(?:src|ref)\.([a-z]{3}(?:-[A-Za-z]{2,4})?)\.txt(?:\.(?:gz|xz|zst))?"
)


def ntrex_files(folder: Path) -> dict[str, Path]:
    """Return the files by code: ``deu_Latn``, or ``fra_CA`` for a regional variety.

    The second Spanish reference is left out.
    """
    files = matching_files(folder, NTREX_FILE)
    return {code_of(match[1]): path for match, path in files}


def english_file(files: Mapping[str, Path], folder: Path) -> Path:
    """Return the English source file, which all references translate.

    Raises:
        DataError: it is missing.
    """
    if ENGLISH not in files:
        raise DataError(
            "newstest2019-src.eng.txt not found, the English source; download it", path=folder
        )
    return files[ENGLISH]


def code_of(spelled: str) -> str:
    """Return the code of a language from the files' spelling: ``fra_CA`` of ``fra-CA``."""
    language, region = parse(spelled)
    # a Chinese region determines the script, which is part of the language's code: zho_Hant
    if region is None or language.iso3 == "zho":
        return language.code
    return f"{language.iso3}_{region}"
