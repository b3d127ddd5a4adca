"""Align two documents sentence by sentence, and write a translation memory (TMX).

    python examples/align_to_tmx.py [MODEL [CHAPTER.de.txt CHAPTER.en.txt]]

The documents say the same in the same order, but not line by line: translators join sentences and
leave some out.
"""

from __future__ import annotations

import sys

import interlingua
import toy
from interlingua.corpus.formats.bitext import read_pairs


def write_documents() -> tuple[str, str]:
    """Write a German and an English chapter.

    In the English one two lines are joined and one is missing.
    """
    rows = toy.sentences(30, seed=31)
    english = [row["en"] for row in rows]
    english[4:6] = [" ".join(english[4:6])]
    del english[20]
    german = toy.write_lines(toy.FOLDER / "chapter.de.txt", [row["de"] for row in rows])
    return str(german), str(toy.write_lines(toy.FOLDER / "chapter.en.txt", english))


def main(model: str, german: str, english: str) -> None:
    """Link the sentences and show all links that are not one to one."""
    output = toy.FOLDER / "chapter.align"
    tmx = toy.FOLDER / "chapter.tmx"
    aligned = interlingua.align(model, german, english, output=output, texts=tmx)
    print(*aligned.report.lines(), sep="\n")

    for line in output.read_text(encoding="utf-8").splitlines():
        source, target, cost = line.split(":")
        if (source.count(","), target.count(",")) != (0, 0) or "[]" in (source, target):
            print(f"German lines {source}, English lines {target}, cost {cost}")
    units = list(read_pairs(tmx))
    print(f"{len(units)} units in {tmx}, such as")
    print(f"  {units[0].source}\n  {units[0].target}")


if __name__ == "__main__":
    given = sys.argv[1:]
    documents = given[1:3] if len(given) > 2 else write_documents()
    main(given[0] if given else str(toy.model()), *documents)
