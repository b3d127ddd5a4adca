"""``interlingua calibrate [MODEL] SOURCE TARGET --parallel HELDOUT -o CALIBRATION.json``."""

from __future__ import annotations

from interlingua.cli.options import make_command
from interlingua.runtime.progress import make_progress
from interlingua.verbs.calibrate import CalibrateOptions, run_calibrate


@make_command(CalibrateOptions)
def calibrate(options: CalibrateOptions, quiet: bool) -> None:
    """Write a calibration, and print how well it fits."""
    with make_progress(quiet) as progress:
        result = run_calibrate(options, progress)
    print("\n".join(result.lines))
