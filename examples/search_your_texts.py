"""Search passages of several languages with a question in one of them.

    python examples/search_your_texts.py [MODEL QUESTION TEXTS.de.txt TEXTS.en.txt ...]

It needs the extra: pip install 'interlingua[search]'
"""

from __future__ import annotations

import shutil
import sys

import toy
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import Searcher, build_index, load_index_model


def write_texts() -> list[str]:
    """Write a file of passages for each language, the language in its name."""
    files = []
    for code in toy.LANGUAGES:
        path = toy.FOLDER / f"passages.{code}.txt"
        toy.write_lines(path, [row[code] for row in toy.sentences(150, seed=61)])
        files.append(str(path))
    return files


def main(model: str, question: str, files: list[str]) -> None:
    """Build the index and search it twice."""
    shutil.rmtree("toy/index", ignore_errors=True)
    added = build_index(model, files, "toy/index")
    print(f"{added.added} passages in the index")
    index = PassageIndex("toy/index")
    searcher = Searcher(index, load_index_model(index))
    print(f"nearest to: {question}")
    for hit in searcher.search(question, top=3).hits:
        print(f"  {hit.score:.3f}  {hit.language}  {hit.text}")
    print("the best of each language:")
    for hit in searcher.search(question, top=3, per_language=1).hits:
        print(f"  {hit.score:.3f}  {hit.language}  {hit.text}")


if __name__ == "__main__":
    given = sys.argv[1:]
    if given:
        main(given[0], given[1], given[2:])
    else:
        german_passage = toy.sentences(150, seed=61)[0]["de"]
        main(str(toy.model()), german_passage, write_texts())
