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
        "Time for everything together, in seconds; training takes what the other steps leave.",
        unit="seconds",
    )
    steps: Annotated[int, AtLeast(1)] | None = option(
        None, "Number of training steps; by default as many as the time allows.", unit="steps"
    )
    # Inputs and outputs.
    output: PathLike = output_option("Folder for all output.", default=Path("quickstart"))
    catalogues: Sequence[PathLike] | None = option(
        None,
        "Further folder of .mo or .po files; repeatable.",
        group=INPUT,
        metavar="DIR",
        reads="folders",
    )
    fetch: bool = option(True, "Fetch public packages with pip.", group=INPUT)
    cache: PathLike = option(
        Path("~/.cache/interlingua/quickstart"),
        "Folder that keeps the fetched packages.",
        group=INPUT,
    )
    require_ratio: float | None = option(
        None,
        "Minimum ratio of the encoder's P@1 across scripts to the P@1 of character n-grams; a lower"
        " ratio is an error.",
    )


def run_quickstart(options: QuickstartOptions) -> QuickstartFindings:
    """Collect public translations, train an encoder on them and evaluate it.

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
