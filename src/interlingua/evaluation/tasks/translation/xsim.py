"""xsim: the error of margin-based retrieval of English, as LASER's ``xsim.py`` computes it.

MEXMA (Janeiro et al. 2024) reports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from interlingua.evaluation.data.folders import ALIGNED, FLORES, FLORES_FOLDERS
from interlingua.evaluation.tasks.groups import FLORES_GROUPS
from interlingua.evaluation.tasks.translation.margin_search import MarginSearch
from interlingua.evaluation.tasks.translation.translations import translation_pairs


class XSim(MarginSearch):
    """xsim on FLORES-200 devtest, X -> English; see ``MarginSearch``.

    The data are line-aligned ``<lang>.txt`` files, including ``eng_Latn.txt``, or the
    ``<a>-<b>.tsv`` pairs of a prepared corpus's ``heldout``. The protocol's data are FLORES-200
    devtest (group ``mexma``, 80 languages). Only FLORES, recognized by content, has the name
    ``xsim``.
    """

    name: ClassVar[str] = "xsim"
    main_metric: ClassVar[str] = "xsim"
    folders: ClassVar[Sequence[str]] = (*FLORES_FOLDERS, "heldout")
    reader: ClassVar = translation_pairs
    expected: ClassVar[str] = ALIGNED
    published: ClassVar[str | None] = FLORES
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = FLORES_GROUPS
