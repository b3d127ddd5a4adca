"""The options of ``extend``, and the record of them in its folder."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from interlingua import __version__, locks
from interlingua.errors import ConfigError, DataError
from interlingua.files import atomic_write, has_format, sha256_file
from interlingua.json_text import parse_json, read_json_text
from interlingua.languages import resolve

Device = Literal["auto", "cpu", "cuda"]
RECORD = "extend.json"
FORMAT = "interlingua-extend-1"
MAY_CHANGE = ("device", "threads")
"""Options that a run may go on with otherwise than it began."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtendSettings:
    """A language to add, and how."""

    model: str
    """Model directory, or hub id."""
    pairs: tuple[Path, ...]
    """Bitexts of the language and the pivot, in any format of ``read_pairs``; where neither content nor name tells the
    languages, the first side is the new one."""
    language: str
    """To add, in any code."""
    output: Path
    """Folder of all that is made."""
    pivot: str = "eng_Latn"
    """The language of the pairs that the model knows."""
    replay: tuple[Path, ...] = ()
    """Text files of other languages (``ru.txt``), or bitexts; their vectors shall stay where they are."""
    replay_share: float = 0.25
    """Sentences to replay for each pair, in every step."""
    replay_weight: float = 1.0
    """Weight of replay in the loss, where each side of the pairs has 1."""
    replay_sentences: int = 1000
    """Sentences of each language that are replayed, at most."""
    check: tuple[Path, ...] = ()
    """Folders of translations (``<lang>.txt`` or ``<a>-<b>.tsv``) on which forgetting is measured; their sentences are
    kept out of training."""
    check_languages: tuple[str, ...] | None = None
    """Languages of these folders; default: all."""
    check_pairs: int | None = None
    """Rows of each set that are measured; default: all."""
    sts: tuple[Path, ...] = ()
    """Files of scored pairs on which forgetting is measured."""
    prompt: str | None = None
    """Name of a prompt of the model, or a text put in front of every sentence; default: the model's default."""
    new_pieces: int | None = None
    """To add to the vocabulary, at most; 0 = none; default: up to 2,000 if the language takes 1.5 times the pivot's
    tokens, or one token in 200 is unknown."""
    heldout: int = 500
    """Pairs that are measured and not trained on, at most a tenth."""
    epochs: float = 3.0
    """Passes over the pairs."""
    batch_size: int = 64
    """Pairs per step."""
    learning_rate: float = 5e-5
    """Peak, per step."""
    max_tokens: int = 128
    """Longer sentences are cut in training."""
    seed: int = 0
    """Decides what is held out, and the order."""
    device: Device = "auto"
    """auto, cpu or cuda."""
    threads: int | None = None
    """CPU threads; default: torch's."""

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ConfigError("extend: no pairs; name a bitext of the language and the pivot with --pairs")
        if resolve(self.language).code == resolve(self.pivot).code:
            raise ConfigError(f"extend: the language and the pivot are both {self.pivot}; name two languages")
        positive = {"epochs": self.epochs, "batch_size": self.batch_size, "learning_rate": self.learning_rate}
        positive |= {"max_tokens": self.max_tokens, "heldout": self.heldout}
        positive |= {"replay_sentences": self.replay_sentences, "replay_share": self.replay_share}
        if self.device not in get_args(Device):
            raise ConfigError(f"extend: device {self.device!r} is unknown; there are: {', '.join(get_args(Device))}")
        for name, value in positive.items():
            if value <= 0:
                raise ConfigError(f"extend: {name} must be above 0, got {value:g}")
        if self.replay_weight < 0 or (self.new_pieces or 0) < 0:
            raise ConfigError("extend: replay_weight and new_pieces must be 0 or more")

    @property
    def replay_batch_size(self) -> int:
        """Sentences to replay in a step."""
        return max(1, round(self.replay_share * self.batch_size))

    def to_record(self) -> dict[str, Any]:
        """As JSON, with digests of the files that are read."""
        values = json.loads(json.dumps(dataclasses.asdict(self), default=str))
        del values["output"]
        files = [path for path in (*self.pairs, *self.replay) if path.is_file()]
        values["files"] = {str(path): sha256_file(path) for path in files}
        return dict(values)


def claim(settings: ExtendSettings) -> None:
    """Marks the output folder as ours, or makes sure that it holds a run of the same settings to go on with.

    Raises:
        ConfigError: it holds a run of other settings, or other files.
        DataError: it can't be written.
    """
    output = settings.output
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file; name another folder with --output")
    record = settings.to_record()
    if output.is_dir() and any(path.name != locks.NAME for path in output.iterdir()):
        if not has_format(output, RECORD, FORMAT):
            raise ConfigError(f"{output} holds other files; name another folder with --output")
        before = read_record(output).get("settings")
        if not isinstance(before, dict):
            raise DataError("has no settings; start over in another folder", path=output / RECORD)
        unlike = [key for key in record if before.get(key) != record[key] and key not in MAY_CHANGE]
        if unlike:
            raise ConfigError(
                f"{output} holds a run of other settings: {unlike[0]} ({before.get(unlike[0])}, {record[unlike[0]]})"
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
        raise DataError(f"can't be read ({error}); start over in another folder", path=output / RECORD) from error
    if not isinstance(content, dict):
        raise DataError("is no object; start over in another folder", path=output / RECORD)
    return content


def write_record(output: Path, content: dict[str, Any]) -> None:
    """Replaces ``extend.json``."""
    with atomic_write(output / RECORD) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
