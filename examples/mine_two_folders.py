"""Find translations in two folders of text: sentences that say the same, among others that do not.

    python examples/mine_two_folders.py [MODEL [GERMAN_FOLDER ENGLISH_FOLDER TRUSTED.de-en.tsv]]

The folders hold ``.txt`` files with a sentence per line. No file belongs to another, and no line to
another. Which score is good enough is learned from some hundred translations that are trusted, of
the same kind of text.
"""

from __future__ import annotations

import random
import sys

import interlingua
import toy


def write_texts() -> list[str]:
    """Write three files per side: 100 sentences are on both, and 100 more on each are not.

    And trusted pairs.
    """
    rows = toy.sentences(800, seed=21)
    for code, first in (("de", 0), ("en", 100)):
        lines = [row[code] for row in rows[first : first + 200]]
        random.Random(code).shuffle(lines)
        for part in range(3):
            toy.write_lines(toy.FOLDER / "news" / code / f"part-{part}.txt", lines[part::3])
    trusted = toy.FOLDER / "news" / "trusted.de-en.tsv"
    toy.write_lines(trusted, [f"{row['de']}\t{row['en']}" for row in rows[500:]])
    return [str(toy.FOLDER / "news" / "de"), str(toy.FOLDER / "news" / "en"), str(trusted)]


def main(model: str, german: str, english: str, trusted: str) -> None:
    """Calibrate the scores, mine pairs, write them and print the best."""
    texts = (f"{german}/*.txt", f"{english}/*.txt")
    languages = {"source_language": "de", "target_language": "en"}
    learned = toy.FOLDER / "calibration.json"
    interlingua.calibrate(model, *texts, output=learned, parallel=trusted, **languages)
    pairs = interlingua.mine(model, *texts, calibration=learned, precision=0.95, **languages)

    print(*pairs.lines, sep="\n")
    lines = [f"{pair.score:.3f}\t{pair.source}\t{pair.target}" for pair in pairs]
    print(*lines[:5], sep="\n")
    toy.write_lines(toy.FOLDER / "mined.tsv", lines)
    print(f"{len(lines)} pairs in toy/mined.tsv")


if __name__ == "__main__":
    given = sys.argv[1:]
    files = given[1:4] if len(given) > 3 else write_texts()
    main(given[0] if given else str(toy.model()), *files)
