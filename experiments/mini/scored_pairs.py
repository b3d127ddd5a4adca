"""STS benchmark's pairs that may train a model for others, by license, in 15 languages.

    python experiments/mini/scored_pairs.py $INTERLINGUA_DATA -o data/mini

Of the benchmark's training split, the image captions (CC-BY-SA) and the headlines (European Media
Monitor, to be named) stay; its videos, its news of other sources and its forum posts have other
terms or none. The benchmark's files do not state the origin of a pair: the sets of SemEval that
it was drawn from do. The scores and the translations are CC-BY-SA 4.0. Pairs with a sentence of a
test or development set are dropped, in whichever language.

OUT/train.tsv has each pair seven times: in English, with one side in another language (three
times), both sides in another language (twice), and in two other languages. OUT/dev.tsv is the
development split with its second side in another language; it is written last, so that it implies
the others. For prepare.toml OUT/pairs has the sentences with their translations, and OUT/held_out
the development and test splits, which prepare keeps out of every source.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from interlingua.storage.files import atomic_write

PIVOT = "en"
OTHERS = ("de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ro", "ru", "sv", "tr", "zh")
OPEN_SETS = ("201*.headlines.test.tsv", "201*.images.test.tsv")
SEED = 0
Pair = tuple[str, str]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with stsb, sts12_16 and sts17")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    stsb = given.data / "stsb"
    rows = {code: read(stsb / f"{code}.train.tsv") for code in (PIVOT, *OTHERS)}
    open_pairs = {
        plain(pair) for path in files(given.data / "sts12_16", *OPEN_SETS) for _, pair in read(path)
    }
    held_out = files(stsb, "*.dev.tsv", "*.test.tsv")
    tests = [*held_out, *files(given.data / "sts17", "*.tsv")]
    unseen = {text for path in tests for _, pair in read(path) for text in plain(pair)}
    kept = [
        row
        for row, (_, pair) in enumerate(rows[PIVOT])
        if plain(pair) in open_pairs and unseen.isdisjoint(plain(pair))
    ]
    for folder in ("pairs", "held_out"):
        (given.output / folder).mkdir(parents=True, exist_ok=True)
    write(given.output / "train.tsv", scored(rows, kept, unseen))
    for code in OTHERS:
        write(
            given.output / "pairs" / f"{code}-en.tsv",
            translations(rows[code], rows[PIVOT], kept, unseen),
        )
    for path in held_out:
        shutil.copy(path, given.output / "held_out")
    development = crossed({code: read(stsb / f"{code}.dev.tsv") for code in (PIVOT, *OTHERS)})
    with atomic_write(given.output / "dev.tsv") as file:
        file.writelines(f"{line}\n" for line in development)
    print(f"{len(kept):,} of {len(rows[PIVOT]):,} pairs")


def scored(
    rows: dict[str, list[tuple[str, Pair]]], kept: Iterable[int], unseen: set[str]
) -> list[str]:
    """Format lines of score and two sentences, in a random order."""
    draw = random.Random(SEED)
    lines = []
    for row in kept:
        languages = [(PIVOT, PIVOT), (PIVOT, draw.choice(OTHERS)), (draw.choice(OTHERS), PIVOT)]
        languages += [(PIVOT, draw.choice(OTHERS))]
        languages += [(code, code) for code in draw.sample(OTHERS, 2)]
        languages += [(one, other) for one, other in [draw.sample(OTHERS, 2)]]
        for one, other in languages:
            pair = rows[one][row][1][0], rows[other][row][1][1]
            if unseen.isdisjoint(plain(pair)):
                lines.append("\t".join((rows[PIVOT][row][0], *pair)))
    draw.shuffle(lines)
    return lines


def crossed(rows: dict[str, list[tuple[str, Pair]]]) -> list[str]:
    """Format lines of score, an English sentence, and the other one in alternating languages."""
    return [
        "\t".join((score, english, rows[OTHERS[row % len(OTHERS)]][row][1][1]))
        for row, (score, (english, _)) in enumerate(rows[PIVOT])
    ]


def translations(
    others: list[tuple[str, Pair]],
    pivots: list[tuple[str, Pair]],
    kept: Iterable[int],
    unseen: set[str],
) -> list[str]:
    """Format lines of a sentence and its English translation, each English one once."""
    found: dict[str, str] = {}
    for row in kept:
        for other, english in zip(others[row][1], pivots[row][1], strict=True):
            if other.strip() and english.strip() and unseen.isdisjoint(plain((other, english))):
                found.setdefault(english, other)
    return [f"{other}\t{english}" for english, other in found.items()]


def read(path: Path) -> list[tuple[str, Pair]]:
    """Read the score and the two sentences of each line."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row[0], (row[1], row[2])) for row in rows]


def files(folder: Path, *patterns: str) -> list[Path]:
    """List the files of a folder with matching names.

    Raises:
        FileNotFoundError: a pattern fits none.
    """
    found = [sorted(folder.glob(pattern)) for pattern in patterns]
    if not all(found):
        raise FileNotFoundError(f"{folder}: no {' or '.join(patterns)}")
    return [path for paths in found for path in paths]


def plain(pair: Pair) -> Pair:
    """Return both sentences without case and punctuation."""
    one, other = (re.sub(r"\W+", " ", text.lower()).strip() for text in pair)
    return one, other


def write(path: Path, lines: Iterable[str]) -> None:
    """Write one text per line."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
