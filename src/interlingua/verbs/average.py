"""``interlingua.average`` and ``interlingua average``: the mean of several models' weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from interlingua.config import AtLeast, refuse_without
from interlingua.config.options import (
    INPUT,
    MODEL,
    OUTPUT,
    Names,
    Options,
    argument,
    function_of,
    listed,
    option,
)
from interlingua.errors import ConfigError
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import REQUIRED, output_option

if TYPE_CHECKING:
    from interlingua.adapt.average import AverageResult, GridPoint

Numbers = str | Sequence[float]
"""Text with numbers separated by commas, or a list of numbers."""


@dataclass(frozen=True)
class AverageOptions(Options):
    """Options of ``average``."""

    models: Sequence[PathLike] = argument(
        "Model folders, run folders or hf:owner/name, all of one shape and vocabulary; the"
        " first one is the start model.",
        kind=list[str],
        reads="models",
    )
    output: PathLike = output_option("Folder for the new model.", REQUIRED, is_positional=True)
    # Either the shares themselves, or the data on which they are chosen.
    weights: Numbers | None = option(None, "Share of each model, separated by commas: 0.4,0.6.")
    grid: Numbers | None = option(
        None,
        "Shares to try on --pairs and --sts for the models after the first one, separated by"
        " commas; 0,0.1,...,1 by default.",
    )
    pairs: Sequence[PathLike] | None = option(
        None,
        "Held-out translations: a bitext or a folder of them; repeatable.",
        group=INPUT,
        reads="texts or folders",
    )
    sts: Sequence[PathLike] | None = option(
        None,
        "Sentence pairs with similarity scores; repeatable.",
        group=INPUT,
        reads="paths",
    )
    languages: Names | None = option(
        None,
        "Languages of the folders of --pairs, separated by commas; all by default.",
        group=INPUT,
    )
    max_pairs: Annotated[int, AtLeast(0)] = option(
        500,
        "Maximum number of pairs of each set, chosen evenly from the whole set; 0 = all.",
        group=INPUT,
        unit="pairs",
    )
    max_loss: Annotated[float, AtLeast(0)] = option(
        0.3, "Maximum loss of P@1, in points, of an average compared with the trained models."
    )
    prompt: str | None = option(
        None,
        "Prompt before every input: the name of a prompt of the model, or a text.",
        group=MODEL,
    )
    overwrite: bool = option(
        False, "Replace the folder if it holds a model of interlingua.", group=OUTPUT
    )

    def __post_init__(self) -> None:
        # An option without effect is a mistake of the user, which must be reported.
        refuse_without(self, "languages", needs="pairs", when=not self.pairs)
        refuse_without(
            self, "max_pairs", "prompt", needs="pairs or sts", when=not (self.pairs or self.sts)
        )
        refuse_without(self, "max_loss", needs="pairs and sts", when=not (self.pairs and self.sts))


def run_average(
    options: AverageOptions, on_point: Callable[[GridPoint], None] = lambda _: None
) -> AverageResult:
    """Average the weights of models, with given shares or the best shares on development data.

    With development data and without weights, the points of a grid are measured, and a rule chooses
    one of them (see ``adapt.average``). With neither development data nor weights, the result is
    the plain mean.

    Args:
        options: of the verb.
        on_point: called with each point of the grid as it is measured.

    Returns:
        The new model's folder, the share of each model, and the grid.

    Raises:
        ConfigError: options contradict each other, or models are not of one shape; the tensors that
            differ are named.
        CheckpointError: a model can't be read.
        DataError: development data can't be read, or ``output`` is there already.
    """
    check_inputs(options)
    from interlingua.adapt.average import average_models

    return average_models(
        options.models,
        options.output,
        weights=_numbers("weights", options.weights),
        grid=_numbers("grid", options.grid),
        pairs=options.pairs or (),
        sts=options.sts or (),
        languages=listed(options.languages or None),
        max_pairs=options.max_pairs or None,
        max_loss=options.max_loss,
        prompt=options.prompt,
        overwrite=options.overwrite,
        on_point=on_point,
    )


def _numbers(option: str, numbers: Numbers | None) -> list[float] | None:
    """Convert comma-separated numbers of the command line, or a list from Python."""
    if numbers is None:
        return None
    if not isinstance(numbers, str):
        return list(numbers)
    try:
        return [float(part) for part in listed(numbers) or []]
    except ValueError:
        raise ConfigError(
            f"--{option}: expected numbers separated by commas, such as 0.4,0.6, found {numbers!r}"
        ) from None


average = function_of(AverageOptions, run_average, "average")
