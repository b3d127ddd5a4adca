"""``interlingua.extend`` and ``interlingua extend``: another language for a trained model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.adapt.settings import ExtendSettings
from interlingua.config.options import function_of
from interlingua.verbs.parts.input_checks import check_inputs

if TYPE_CHECKING:
    from interlingua.adapt.extend import ExtendResult


def run_extend(options: ExtendSettings, *, progress: bool = False) -> ExtendResult:
    """Add a language to a model, from pairs of the new language and one that the model knows.

    An interrupted run resumes where it stopped.

    Args:
        options: of the verb.
        progress: show progress on standard error.

    Returns:
        The model, which is in ``model/`` of the output, and the measurements before and after.

    Raises:
        ConfigError: an option is out of range, or the folder holds something else.
        DataError: files are missing or broken, or nothing is left to train on.
        CheckpointError: there is no such model.
        InterlinguaError: training was stopped; the same call resumes it.
    """
    check_inputs(options)
    from interlingua.adapt.extend import Extension

    return Extension(options, progress=progress).run()


extend = function_of(ExtendSettings, run_extend, "extend")
