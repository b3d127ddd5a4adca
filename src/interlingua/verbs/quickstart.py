"""``interlingua.quickstart`` and ``interlingua quickstart``: from catalogues to an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from interlingua.config import AtLeast
from interlingua.config.options import INPUT, Options, filled, function_of, option
from interlingua.errors import require_extra
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import output_option

if TYPE_CHECKING:
    from interlingua.getting_started.report import QuickstartFindings


@dataclass(frozen=True)
class QuickstartOptions(Options):
    """Options of ``quickstart``."""

    budget_seconds: Annotated[float, AtLeast(1)] = option(
        330.0,
        "Seconds for everything together; what is left after the rest is for training.",
        unit="seconds",
    )
    steps: Annotated[int, AtLeast(1)] | None = option(
        None, "Training steps, instead of as many as the budget bears.", unit="steps"
    )
    output: PathLike = output_option("Folder for all it makes.", default=Path("quickstart"))
    catalogues: Sequence[PathLike] | None = option(
        None,
        "A further folder with .mo or .po files; may be given several times.",
        group=INPUT,
        metavar="DIR",
        reads="folders",
    )
    fetch: bool = option(True, "Whether to fetch public packages with pip.", group=INPUT)
    cache: PathLike = option(
        Path("~/.cache/interlingua/quickstart"), "Where fetched packages are kept.", group=INPUT
    )
    require_ratio: float | None = option(
        None,
        "Fail unless, across scripts, the encoder's P@1 is so many times that of character"
        " n-grams.",
    )


def run_quickstart(options: QuickstartOptions) -> QuickstartFindings:
    """Collect translations, train an encoder on them, measure it and show what it can do.

    It prints its findings while it runs, as the command line does.

    Args:
        options: of the verb.

    Returns:
        The findings.

    Raises:
        ConfigError: an option is wrong.
        DataError: no translations are found.
        InterlinguaError: the ratio that is required was not reached.
    """
    check_inputs(options)
    require_extra("sklearn", package="scikit-learn", extra="quickstart")
    from interlingua.getting_started.run import Settings, show_quickstart

    settings = filled(
        Settings,
        options,
        catalogues=tuple(map(Path, options.catalogues or ())),
        packages=None if options.fetch else (),  # None = the usual ones
        cache=Path(options.cache),
    )
    findings = show_quickstart(settings)
    if options.require_ratio is not None:
        findings.require(options.require_ratio)
    return findings


quickstart = function_of(QuickstartOptions, run_quickstart, "quickstart")
