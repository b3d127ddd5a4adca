"""The options of ``extend``, and the workspace of a run with them."""

from __future__ import annotations

import dataclasses
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from interlingua.config import Above, AtLeast, refuse_without
from interlingua.config.languages import resolve_language
from interlingua.config.options import (
    INPUT,
    MODEL,
    OUTPUT,
    Names,
    Options,
    argument,
    listed,
    option,
)
from interlingua.errors import ConfigError
from interlingua.storage.files import PathLike
from interlingua.storage.formats import EXTEND
from interlingua.storage.workspace import Workspace, open_workspace

Device = Literal["auto", "cpu", "cuda"]
Files = Any
"""One path or several; ``ExtendSettings`` converts them to a tuple of ``Path``."""
_MAY_CHANGE = ("device", "threads")
"""Options that may change when a run is resumed."""


@dataclass(frozen=True)
class ExtendSettings(Options):
    """Options of ``extend``: a language to add, and how.

    Paths are kept as ``Path``, languages as ``eus_Latn``.
    """

    model: PathLike = argument("Model folder, run folder or hf:owner/name.", reads="model")
    pairs: Files = option(
        help="Bitext of the new language and the pivot language, in any format of prepare;"
        " repeatable. If neither content nor file name gives the languages, the first side is"
        " the new language.",
        group=INPUT,
        kind=list[Path],
        is_positional=True,
        reads="texts or folders",
    )
    language: str = option(
        help="Language to add, in any code.", group=INPUT, flags=("--lang",), is_positional=True
    )
    output: PathLike = option(
        help="Output folder; the extended model is in its subfolder model.",
        group=OUTPUT,
        kind=Path,
        short="-o",
        is_positional=True,
    )
    pivot: str = option(
        "eng_Latn",
        "Language of the other side of --pairs, which the model already knows.",
        group=INPUT,
    )
    replay: Files = option(
        None,
        "Text of another language (ru.txt) or a bitext, for which the vectors are to stay the"
        " same; repeatable.",
        group=INPUT,
        kind=list[Path],
        reads="texts or folders",
    )
    replay_share: Annotated[float, Above(0)] = option(
        0.25, "Number of replayed sentences for each training pair."
    )
    replay_weight: Annotated[float, AtLeast(0)] = option(
        1.0, "Weight of the replay loss; the loss of each side of the pairs has weight 1."
    )
    replay_sentences: Annotated[int, AtLeast(1)] = option(
        1000, "Maximum number of replayed sentences of each language.", group=INPUT
    )
    check: Files = option(
        None,
        "Folder of translations to measure forgetting on (FLORES, Tatoeba); its sentences are"
        " kept out of training; repeatable.",
        group=INPUT,
        kind=list[Path],
        reads="texts or folders",
    )
    check_languages: Names | None = option(
        None,
        "Languages of the folders of --check, separated by commas; all by default.",
        group=INPUT,
    )
    check_pairs: Annotated[int, AtLeast(0)] | None = option(
        0, "Number of rows of each set of --check, evenly spread; 0 = all.", group=INPUT, kind=int
    )
    sts: Files = option(
        None,
        "Sentence pairs with similarity scores to measure forgetting on; repeatable.",
        group=INPUT,
        kind=list[Path],
        reads="paths",
    )
    prompt: str | None = option(
        None,
        "Prompt before every sentence: the name of a prompt of the model, or a text.",
        group=MODEL,
    )
    new_pieces: Annotated[int, AtLeast(0)] | None = option(
        None,
        "Maximum number of new vocabulary pieces; 0 = none; by default 2,000 if the vocabulary"
        " splits the language's words too finely.",
        kind=int,
    )
    heldout: Annotated[int, AtLeast(1)] = option(
        500,
        "Number of pairs to hold out for measurement, at most a tenth of the pairs.",
        group=INPUT,
    )
    epochs: Annotated[float, Above(0)] = option(3.0, "Number of passes over the pairs.")
    batch_size: Annotated[int, AtLeast(1)] = option(
        64, "Number of pairs in a training step.", unit="pairs"
    )
    learning_rate: Annotated[float, Above(0)] = option(5e-5, "Peak learning rate.")
    max_tokens: Annotated[int, AtLeast(2)] = option(
        128,
        "Maximum number of tokens of a sentence in training; longer sentences are cut.",
        unit="tokens",
    )
    seed: int = option(0, "Seed of the held-out pairs and of their order in training.")
    device: Device = option(
        "auto", "Device: cpu, cuda, or auto (a GPU if there is one).", group=MODEL
    )
    threads: Annotated[int, AtLeast(1)] | None = option(
        None, "Number of CPU threads; all by default.", group=MODEL, kind=int
    )

    def __post_init__(self) -> None:
        replayed = ("replay_share", "replay_weight", "replay_sentences")
        refuse_without(self, *replayed, needs="replay", when=not self.replay)
        refuse_without(self, "check_languages", needs="check", when=not self.check)
        refuse_without(
            self, "check_pairs", needs="check", when=bool(self.check_pairs) and not self.check
        )
        # Convert each value to one form, because the record compares the values later. The object
        # is frozen, so only ``object.__setattr__`` can set them.
        normalized = {
            **{name: _paths(getattr(self, name)) for name in ("pairs", "replay", "check", "sts")},
            "language": resolve_language(self.language).code,
            "pivot": resolve_language(self.pivot).code,
            "output": Path(self.output),
            "check_languages": tuple(listed(self.check_languages) or ()) or None,
            "check_pairs": self.check_pairs or None,
        }
        for name, value in normalized.items():
            object.__setattr__(self, name, value)
        if not self.pairs:
            raise ConfigError(
                "extend: no pairs; name a bitext of the language and the pivot with --pairs"
            )
        if self.language == self.pivot:
            raise ConfigError(
                f"extend: the language and the pivot are both {self.pivot}; name two languages"
            )
        if self.device not in get_args(Device):
            raise ConfigError(
                f"extend: unknown device {self.device!r}; use one of: {', '.join(get_args(Device))}"
            )

    @property
    def replay_batch_size(self) -> int:
        """Sentences to replay in a step."""
        return max(1, round(self.replay_share * self.batch_size))

    def to_record(self) -> dict[str, Any]:
        """Return the options that decide the result."""
        values = dataclasses.asdict(self)
        # A run that was moved to another folder resumes there.
        del values["output"]
        return values


def _paths(paths: Any) -> tuple[Path, ...]:
    """Return a path or several paths as a tuple of ``Path``; None gives an empty tuple."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    return tuple(Path(path).expanduser() for path in paths or ())


def open_extension(settings: ExtendSettings) -> AbstractContextManager[Workspace]:
    """Lock the output folder, and start a run there or resume one of the same settings and inputs.

    Raises:
        ConfigError: the folder holds a run of other settings or inputs, or other files.
        DataError: the folder's record is damaged, or the folder can't be written.
    """
    return open_workspace(
        settings.output,
        EXTEND,
        settings=settings.to_record(),
        inputs=(settings.model, *settings.pairs, *settings.replay, *settings.check, *settings.sts),
        may_change=_MAY_CHANGE,
        remedy="name another folder with --output",
    )
