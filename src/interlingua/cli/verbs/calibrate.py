"""``interlingua calibrate [MODEL] SOURCE TARGET --parallel HELDOUT -o CALIBRATION.json``."""

from __future__ import annotations

from interlingua.cli.options import command
from interlingua.runtime.progress import shown
from interlingua.verbs.calibrate import CalibrateOptions, run_calibrate


@command(CalibrateOptions)
def calibrate(options: CalibrateOptions, quiet: bool) -> None:
    """Learn what a mining score is worth: the probability that a pair is a translation."""
    with shown(quiet) as progress:
        result = run_calibrate(options, progress)
    print("\n".join(result.lines))
