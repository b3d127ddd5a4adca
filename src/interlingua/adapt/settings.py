"""The options of ``extend``, and the record of them in its folder."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from interlingua import __version__, locks
from interlingua.config import refuse_without
from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike, atomic_write, has_format, sha256_file
from interlingua.json_text import parse_json, read_json_text
from interlingua.languages import resolve
from interlingua.options import INPUT, MODEL, OUTPUT, Names, Options, argument, listed, option

Device = Literal["auto", "cpu", "cuda"]
RECORD = "extend.json"
FORMAT = "interlingua-extend-1"
Files = Any
"""A path or several, of which ``ExtendSettings`` makes a tuple of ``Path``."""
MAY_CHANGE = ("device", "threads")
"""Options that a run may go on with otherwise than it began."""


@dataclass(frozen=True)
class ExtendSettings(Options):
    """Options of ``extend``: a language to add, and how.

    Paths are kept as ``Path``, languages as ``eus_Latn``.
    """

    model: PathLike = argument("Model directory, run or hub id.", reads="model")
    pairs: Files = option(
        help="Bitext of the language and the pivot, in any format of prepare; may be given several"
        " times. Where neither content nor name tells the languages, the first side is the"
        " new one.",
        group=INPUT,
        kind=list[Path],
        is_positional=True,
        reads="texts or folders",
    )
    language: str = option(
        help="The language to add, in any code.", group=INPUT, flags=("--lang",), is_positional=True
    )
    output: PathLike = option(
        help="Folder of all that is made; the model is in its model/.",
        group=OUTPUT,
        kind=Path,
        short="-o",
        is_positional=True,
    )
    pivot: str = option("eng_Latn", "The language of the pairs that the model knows.", group=INPUT)
    replay: Files = option(
        None,
        "Text of another language (ru.txt), or a bitext: its vectors shall stay; repeatable.",
        group=INPUT,
        kind=list[Path],
        reads="texts or folders",
    )
    replay_share: float = option(0.25, "Sentences to replay for each pair, in every step.")
    replay_weight: float = option(
        1.0, "Weight of replay in the loss; each side of the pairs has 1.", minimum=0
    )
    replay_sentences: int = option(
        1000, "Sentences of each language to replay, at most.", group=INPUT, minimum=1
    )
    check: Files = option(
        None,
        "Folder of translations on which forgetting is measured, kept out of training: FLORES,"
        " Tatoeba; repeatable.",
        group=INPUT,
        kind=list[Path],
        reads="texts or folders",
    )
    check_languages: Names | None = option(
        None, "Languages of these folders, with commas; all by default.", group=INPUT
    )
    check_pairs: int | None = option(
        0, "Rows of each of their sets, evenly spread; 0 = all.", group=INPUT, kind=int, minimum=0
    )
    sts: Files = option(
        None,
        "Scored pairs on which forgetting is measured; repeatable.",
        group=INPUT,
        kind=list[Path],
        reads="paths",
    )
    prompt: str | None = option(
        None, "Name of a prompt of the model, or text put before every sentence.", group=MODEL
    )
    new_pieces: int | None = option(
        None,
        "New vocabulary, at most; 0 = none; by default 2,000 if the text falls apart.",
        kind=int,
        minimum=0,
    )
    heldout: int = option(
        500, "Pairs to measure on instead of training, at most a tenth.", group=INPUT, minimum=1
    )
    epochs: float = option(3.0, "Passes over the pairs.")
    batch_size: int = option(64, "Pairs per step.", minimum=1, unit="pairs")
    learning_rate: float = option(5e-5, "Peak, per step.")
    max_tokens: int = option(128, "Longer sentences are cut in training.", minimum=2, unit="tokens")
    seed: int = option(0, "Decides what is held out, and the order.")
    device: Device = option("auto", "auto, cpu or cuda.", group=MODEL)
    threads: int | None = option(
        None, "CPU threads; all by default.", group=MODEL, kind=int, minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        replayed = ("replay_share", "replay_weight", "replay_sentences")
        refuse_without(self, *replayed, needs="replay", when=not self.replay)
        refuse_without(self, "check_languages", needs="check", when=not self.check)
        refuse_without(
            self, "check_pairs", needs="check", when=bool(self.check_pairs) and not self.check
        )
        # One form of each value, however it was given: the record compares them later. The object
        # is frozen, so that they can only be put in like this.
        normalized = {
            **{name: _paths(getattr(self, name)) for name in ("pairs", "replay", "check", "sts")},
            "language": resolve(self.language).code,
            "pivot": resolve(self.pivot).code,
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
                f"extend: device {self.device!r} is unknown; there are:"
                f" {', '.join(get_args(Device))}"
            )
        for name in ("epochs", "learning_rate", "replay_share"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"extend: {name} must be above 0, got {getattr(self, name):g}")

    @property
    def replay_batch_size(self) -> int:
        """Sentences to replay in a step."""
        return max(1, round(self.replay_share * self.batch_size))

    def to_record(self) -> dict[str, Any]:
        """As JSON, with digests of the files that are read."""
        values = json.loads(json.dumps(dataclasses.asdict(self), default=str))
        # A run that was moved to another folder goes on there.
        del values["output"]
        # By content: a file that was changed makes another run.
        files = [path for path in (*self.pairs, *self.replay) if path.is_file()]
        values["files"] = {str(path): sha256_file(path) for path in files}
        return dict(values)


def _paths(paths: Any) -> tuple[Path, ...]:
    """None, a path or several as a tuple of ``Path``."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    return tuple(Path(path).expanduser() for path in paths or ())


def claim(settings: ExtendSettings) -> None:
    """Marks the output folder as ours, or checks that it holds a run of the same settings.

    Raises:
        ConfigError: it holds a run of other settings, or other files.
        DataError: it can't be written.
    """
    output = Path(settings.output)
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file; name another folder with --output")
    record = settings.to_record()
    # The lock file of this run is there already, and does not count.
    if output.is_dir() and any(path.name != locks.NAME for path in output.iterdir()):
        if not has_format(output, RECORD, FORMAT):
            raise ConfigError(f"{output} holds other files; name another folder with --output")
        before = read_record(output).get("settings")
        if not isinstance(before, dict):
            raise DataError("has no settings; start over in another folder", path=output / RECORD)
        for key, value in record.items():
            if key not in MAY_CHANGE and before.get(key) != value:
                raise ConfigError(
                    f"{output} holds a run of other settings: {key} ({before.get(key)}, {value})"
                    " (then, now); name another folder with --output"
                )
        return
    write_record(output, {"format": FORMAT, "version": __version__, "settings": record})


def read_record(output: Path) -> dict[str, Any]:
    """What ``extend.json`` holds.

    Raises:
        DataError: it is missing or damaged.
    """
    try:
        content = parse_json(read_json_text(output / RECORD))
    except (OSError, ValueError) as error:
        raise DataError(
            f"can't be read ({error}); start over in another folder", path=output / RECORD
        ) from error
    if not isinstance(content, dict):
        raise DataError("not an object; start over in another folder", path=output / RECORD)
    return content


def write_record(output: Path, content: dict[str, Any]) -> None:
    """Replaces ``extend.json``."""
    with atomic_write(output / RECORD) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
