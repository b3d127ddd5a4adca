"""Write passages in two languages.

These are neighboring pairs of sentences, joined until they are as long as a paragraph.

    python experiments/mini/passages.py "$INTERLINGUA_DATA/train-mix/pairs" \
        --held-out prepared/mini/valid_text -o data/mini/passages

The sets are of sentences, and a student that reads only sentences loses the passages of all
languages but English: its MRR on TyDi's English passages stayed, and in other languages it fell by
up to a quarter. Each language's passages come half from sets of documents, where neighbors belong
together, as far as there are such. Held-out pairs are left out.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

DOCUMENTS = ("tico19", "ms_courses", "freecodecamp")
SENTENCES = ("tatoeba_challenge", "indian_parallel", "small_parallel_enja")
SHORTEST, LONGEST = 200, 700
"""Characters of a passage in English; each passage's length is drawn between them."""
LEAST_WORDS = 4
"""Minimum words of an English sentence; headings and cells of tables have fewer."""
Pair = tuple[str, str]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, help="folder of <lang>-<lang>.<set>.tsv files")
    parser.add_argument(
        "--held-out", type=Path, required=True, help="valid_text of a prepared corpus"
    )
    parser.add_argument("--passages", type=int, default=800, help="of a language, at most")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    held_out = {
        side for path in given.held_out.glob("*.tsv") for pair in pairs_of(path) for side in pair
    }
    given.output.mkdir(parents=True, exist_ok=True)
    languages = {
        path.name.split(".")[0].replace("en", "").strip("-")
        for path in given.pairs.glob("*en*.tsv")
    }
    for language in sorted(languages - {""}):
        rng = random.Random(language)
        found = drawn(
            rng, passages(rng, given.pairs, language, DOCUMENTS, held_out), given.passages // 2
        )
        found += drawn(
            rng,
            passages(rng, given.pairs, language, SENTENCES, held_out),
            given.passages - len(found),
        )
        if found:
            lines = "".join(f"{other}\t{english}\n" for other, english in found)
            (given.output / f"{language}-en.passages.tsv").write_text(lines, encoding="utf-8")
            print(f"{language}: {len(found)} passages")


def passages(
    rng: random.Random, folder: Path, language: str, sets: tuple[str, ...], held_out: set[str]
) -> Iterator[Pair]:
    """Yield passages of some sets in a language and English."""
    for name in sets:
        for sides, path in (
            (1, folder / f"{language}-en.{name}.tsv"),
            (-1, folder / f"en-{language}.{name}.tsv"),
        ):
            kept: list[Pair] = []
            length = rng.randint(SHORTEST, LONGEST)
            for pair in pairs_of(path) if path.is_file() else ():
                other, english = pair[::sides]
                if (
                    len(english.split()) < LEAST_WORDS
                    or held_out & {other, english}
                    or other == english
                ):
                    continue
                kept.append((other, english))
                if sum(len(english) for _, english in kept) >= length:
                    yield joined(kept, language)
                    kept, length = [], rng.randint(SHORTEST, LONGEST)


def joined(pairs: list[Pair], language: str) -> Pair:
    """Join the sentences to one passage per language, without spaces in Chinese and Japanese."""
    others, english = zip(*pairs, strict=True)
    return ("" if language in {"zh", "ja"} else " ").join(others), " ".join(english)


def drawn(rng: random.Random, found: Iterator[Pair], count: int) -> list[Pair]:
    """Draw a number of passages at random."""
    kept = list(found)
    return rng.sample(kept, min(count, len(kept)))


def pairs_of(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file. Lines without two sides are skipped, as in ``prepare``."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            sides = line.rstrip("\n").split("\t")
            if len(sides) > 1:
                yield sides[0], sides[1]


if __name__ == "__main__":
    main()
