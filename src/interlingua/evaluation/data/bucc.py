"""Reader of BUCC: two monolingual texts with ids, and which ids are translations.

The files of a split are ``de-en/de-en.training.de`` and ``de-en.training.en`` (id TAB sentence) and
``de-en.training.gold`` (two ids). The splits ``test`` and ``sample`` have the same files; LASER and
others call ``sample`` ``dev``. The names may lack the language pair (``dev.zh``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.errors import DataError, count_of
from interlingua.evaluation.data.folders import full_code
from interlingua.storage.files import tab_rows

_FILE = re.compile(
    r"(?:[a-z]{2,3}-[a-z]{2,3}\.)?(training|train|test|sample|dev)\.([a-z]{2,3})(?:\.gz|\.xz|\.zst)?"
)
_ENGLISH = "en"
_SPLITS = {"train": "training"}
TRAINING = "training"
TEST = "test"
TRAINING_GOLD = {"de-en": 9580, "fr-en": 9086, "ru-en": 14435, "zh-en": 1899}
"""Gold pairs of the shared task's training data."""
_TUNING = (TRAINING, "sample", "dev", TEST)


class BuccFiles(NamedTuple):
    """The files of one split of a language pair; English is the target, as in the shared task."""

    languages: tuple[str, str]
    source: Path
    target: Path
    gold: Path

    @property
    def name(self) -> str:
        """``zh-en``."""
        return "-".join(self.languages)


class BuccText(NamedTuple):
    """The sentences of one side and their ids, in the file's order."""

    ids: list[str]
    texts: list[str]


class BuccSplit(NamedTuple):
    """A split; a gold pair is the row of its source and the row of its target."""

    source: BuccText
    target: BuccText
    gold: list[tuple[int, int]]


class BuccPair(NamedTuple):
    """A language pair: a split, and the test split if requested and if its gold pairs exist.

    ``data`` is the split to score. With test data it is the split that a threshold is tuned on.
    """

    languages: tuple[str, str]
    split: str
    data: BuccSplit
    test: BuccSplit | None

    def splits(self) -> list[BuccSplit]:
        """Return the splits that were read."""
        if self.test is None:
            return [self.data]
        return [self.data, self.test]

    def sentences(self) -> int:
        """Return the number of sentences on both sides."""
        return sum(len(split.source.ids) + len(split.target.ids) for split in self.splits())

    def is_official(self, name: str) -> bool:
        """Return whether this is the shared task's training data of the language pair ``name``."""
        return self.split == TRAINING and len(self.data.gold) == TRAINING_GOLD.get(name)

    def contents(self) -> Iterator[Sequence[str]]:
        """Yield all ids, texts and gold pairs."""
        for split in self.splits():
            yield from (*split.source, *split.target)
            yield [f"{source} {target}" for source, target in split.gold]


def bucc_files(folder: Path) -> dict[str, dict[str, BuccFiles]]:
    """Find the splits in a folder and below it: language pair -> split -> files.

    Subfolders named after a language pair are searched. The gold file of a split may be missing.
    """
    found: dict[str, dict[str, BuccFiles]] = {}
    if not folder.is_dir():
        return found
    below = sorted(path for path in folder.glob(f"*-{_ENGLISH}") if path.is_dir())
    for directory in (folder, *below):
        # files of one stem, de-en.training., are the two languages of a split
        sides: dict[tuple[str, str], dict[str, Path]] = {}
        for path in sorted(directory.iterdir()):
            if (match := _FILE.fullmatch(path.name)) and path.is_file():
                stem = path.name[: match.start(2)]
                sides.setdefault((stem, _SPLITS.get(match[1], match[1])), {})[match[2]] = path
        for (stem, split), files in sides.items():
            # every language of the split is paired with English
            for pair in itertools.permutations(files, 2):
                if pair[1] == _ENGLISH:
                    gold = directory / f"{stem}gold"
                    one = BuccFiles(pair, files[pair[0]], files[pair[1]], gold)
                    # the folder's own files go before those below it
                    found.setdefault(one.name, {}).setdefault(split, one)
    return found


def read_bucc(files: BuccFiles) -> BuccSplit:
    """Read a split with its gold pairs.

    Raises:
        DataError: a file is missing or empty, a line is not id TAB sentence, an id or a gold pair
            occurs twice, or a gold pair names an id that is not in the texts.
    """
    source = _read_text(files.source)
    target = _read_text(files.target)
    rows = [{name: row for row, name in enumerate(side.ids)} for side in (source, target)]
    # a dictionary as an ordered set
    gold: dict[tuple[int, int], None] = {}
    for number, names in tab_rows(files.gold):
        if len(names) != 2:
            raise DataError(
                f"expected id TAB id, found {count_of(len(names), 'columns')}",
                path=files.gold,
                line=number,
            )
        for name, known, path in zip(names, rows, (files.source, files.target), strict=True):
            if name.strip() not in known:
                raise DataError(
                    f"the id {name.strip()!r} was not found in {path.name}",
                    path=files.gold,
                    line=number,
                )
        pair = (rows[0][names[0].strip()], rows[1][names[1].strip()])
        if pair in gold:
            raise DataError("the pair occurs twice; remove one", path=files.gold, line=number)
        gold[pair] = None
    if not gold:
        raise DataError("the file is empty; expected one pair of ids per line", path=files.gold)
    return BuccSplit(source, target, list(gold))


def read_bucc_pair(
    folder: Path, name: str, split: str | None = None, *, with_test: bool = False
) -> BuccPair:
    """Read a language pair of a folder.

    Args:
        folder: see ``bucc_files``.
        name: ``de-en``.
        split: to read; by default training, sample, dev or test, the first of these that has gold.
        with_test: besides the training split, read the test split if it has gold.

    Raises:
        DataError: the gold of its split is missing, or a file is broken.
    """
    files = bucc_files(folder)[name]
    with_gold = [split for split, one in files.items() if one.gold.is_file()]
    possible: Sequence[str] = _TUNING
    wanted = "any split"
    if split:
        possible = (split,)
        wanted = f"the split {split!r}"
    chosen = next((one for one in possible if one in with_gold), None)
    if chosen is None:
        there = ", ".join(with_gold) or "none"
        raise DataError(
            f"no gold file of {wanted} of {name} found; splits with a gold file: {there}",
            path=folder,
        )
    first, second = map(full_code, name.split("-"))
    test: BuccSplit | None = None
    if with_test and chosen == TRAINING and TEST in with_gold:
        test = read_bucc(files[TEST])
    return BuccPair((first, second), chosen, read_bucc(files[chosen]), test)


def _read_text(path: Path) -> BuccText:
    rows: dict[str, str] = {}
    for number, (name, *columns) in tab_rows(path):
        # a tab in a sentence is part of it
        text = "\t".join(columns)
        if not name.strip() or not text.strip():
            raise DataError(
                "expected id TAB sentence; correct or remove the line", path=path, line=number
            )
        # rows are found by id from the gold pairs, so ids must be unique
        if name.strip() in rows:
            raise DataError(
                f"the id {name.strip()!r} occurs twice; use unique ids",
                path=path,
                line=number,
            )
        rows[name.strip()] = text.strip()
    if not rows:
        raise DataError("the file is empty; expected id TAB sentence per line", path=path)
    return BuccText(list(rows), list(rows.values()))
