"""Find translations in two folders of text: sentences that say the same, among others that do not.

    python examples/mine_two_folders.py [MODEL [GERMAN_FOLDER ENGLISH_FOLDER]]

The folders hold ``.txt`` files with a sentence per line. No file belongs to another, and no line to another.
"""

from __future__ import annotations

import random
import sys

import interlingua
import toy


def write_folders() -> tuple[str, str]:
    """Three files on either side: 100 sentences are on both, and 100 more on each are not."""
    rows = toy.sentences(500, seed=21)
    for code, first in (("de", 0), ("en", 100)):
        lines = [row[code] for row in rows[first : first + 200]]
        random.Random(code).shuffle(lines)
        for part in range(3):
            toy.write_lines(toy.FOLDER / "news" / code / f"part-{part}.txt", lines[part::3])
    return str(toy.FOLDER / "news" / "de"), str(toy.FOLDER / "news" / "en")


def main(model: str, german: str, english: str) -> None:
    """Mines, writes the pairs and prints the best."""
    pairs = interlingua.mine(
        model,
        f"{german}/*.txt",
        f"{english}/*.txt",
        source_language="de",
        target_language="en",
        threshold=1.15,  # of the margin; interlingua.calibrate finds what it is worth on your text
    )
    print(*pairs.lines, sep="\n")
    lines = [f"{pair.score:.3f}\t{pair.source}\t{pair.target}" for pair in pairs]
    print(*lines[:5], sep="\n")
    toy.write_lines(toy.FOLDER / "mined.tsv", lines)
    print(f"{len(lines)} pairs in toy/mined.tsv")


if __name__ == "__main__":
    given = sys.argv[1:]
    folders = given[1:3] if len(given) > 2 else write_folders()
    main(given[0] if given else str(toy.model()), *folders)
