"""How pairs of sentences are found: the options that ``mine`` and ``calibrate`` have in common.

The options classes of the verbs inherit them, and the steps of mining receive such options. This
module loads neither numpy nor torch, as ``--help`` imports it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from interlingua.config.options import SEARCH, Options, option
from interlingua.config.registry import check_choice
from interlingua.errors import ConfigError
from interlingua.mining import defaults

if TYPE_CHECKING:
    from interlingua.mining.documents import DocumentMatch
    from interlingua.retrieval.topk.approximate import Approximate

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_size(text: str | int) -> int:
    """Return the bytes of ``4GiB``, ``800M`` or ``1000000``; a number is in bytes.

    Raises:
        ConfigError: it is not a size.
    """
    text = str(text)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise ConfigError(
            f"--memory: expected a size with a unit, such as 4GiB or 800MiB, found {text!r}"
        )
    size = int(float(found[1]) * _UNITS[found[2].upper()])
    if size < 1:
        raise ConfigError(
            f"--memory: expected a size greater than 0, such as 4GiB or 800MiB, found {text!r}"
        )
    return size


@dataclass(frozen=True)
class PairSearch(Options):
    """Options of the search for pairs."""

    documents: str | None = option(
        None,
        "Compare only sentences of matched documents: equal (same names), urls (same URL except"
        " for the language), or a file of document TAB document. The search runs on the CPU.",
        group=SEARCH,
        reads="documents",
    )
    background: defaults.Background = option(
        defaults.BACKGROUND,
        "With --documents: number of further texts of the other side that the margin includes.",
        group=SEARCH,
    )
    k: defaults.NeighborCount = option(
        defaults.K,
        "Number of neighbors of a sentence that are scored, and that the margin averages over.",
        group=SEARCH,
    )
    margin: defaults.Margin = option(
        defaults.DEFAULT_MARGIN,
        "Formula of the score: ratio, distance or absolute (plain cosine).",
        group=SEARCH,
    )
    retrieval: defaults.Retrieval = option(
        defaults.RETRIEVAL,
        "Direction of the search: forward, backward, intersection (pairs found in both) or max"
        " (best of both, each sentence once).",
        group=SEARCH,
    )
    equal: defaults.Equal = option(
        defaults.EQUAL,
        "Which lines are the same text: exact (equal), folded (equal except for case and"
        " punctuation; the signs of numbers count) or never.",
        group=SEARCH,
    )
    # Limits of the work.
    memory: str | int = option(
        f"{defaults.MEMORY_GIB}GiB",
        "Memory for reading, search and the choice of pairs, in addition to the model's, in bytes"
        " or with a unit: 4GiB, 800MiB.",
        group=SEARCH,
        unit="bytes",
    )

    def check_search(self) -> None:
        """Check all options of the search.

        Raises:
            ConfigError: one has an unknown value, or two exclude each other.
        """
        check_choice("margin", self.margin, get_args(defaults.Margin))
        check_choice("retrieval", self.retrieval, get_args(defaults.Retrieval))
        check_choice("equal", self.equal, get_args(defaults.Equal))
        parse_size(self.memory)
        match = self.document_match
        if self.is_like_laser and match is not None:
            raise ConfigError("--laser and --documents cannot be combined; remove one")
        if self.approximation is not None and match is not None:
            raise ConfigError(
                "--approximate and --documents cannot be combined, because the search within"
                " documents is short; remove --approximate"
            )

    @property
    def document_match(self) -> DocumentMatch | None:
        """The matching of documents, if only texts of matched documents are compared."""
        if not self.documents:
            return None
        from interlingua.mining.documents import DocumentMatch

        return DocumentMatch.parse(self.documents)

    @property
    def memory_bytes(self) -> int:
        """Bytes for reading, searching and choosing, without those of the model."""
        return parse_size(self.memory)

    @property
    def approximation(self) -> Approximate | None:
        """The approximate search; None = exact search, as in every verb except ``mine``."""
        return None

    @property
    def is_like_laser(self) -> bool:
        """True if the search is LASER's mine_bitexts with ``--unify``; an option of ``mine``."""
        return False

    @property
    def search_device(self) -> str:
        """Device of matrix products.

        A search within documents or among codes of vectors uses the device only if it is large.
        """
        return "cpu"

    @property
    def scoring(self) -> str:
        """Description of all settings that determine the meaning of a score."""
        words = f"mine {self.margin} k={self.k} {self.retrieval}"
        if self.documents:
            words += f" within documents and {self.background} others"
        return words
