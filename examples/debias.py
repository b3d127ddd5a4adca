"""Take the language out of a model's vectors, so that one index can hold many languages.

    python examples/debias.py [MODEL TEXTS]

TEXTS is a folder with ``de.txt``, ``en.txt`` and so on. Without arguments a model is trained so
briefly that it still keeps the languages apart.
"""

from __future__ import annotations

import sys

import interlingua
import toy


def half_trained() -> str:
    """Train a model that often has sentences of the same language as nearest neighbors."""
    return str(toy.train(toy.run("half-trained", {"name": "ems"}, steps=50)))


def write_texts() -> str:
    """Write a file of sentences for each language.

    Line n of each says the same, so the effect can be measured.
    """
    rows = toy.sentences(800, seed=51)
    for code in toy.LANGUAGES:
        toy.write_lines(toy.FOLDER / "texts" / f"{code}.txt", [row[code] for row in rows])
    return str(toy.FOLDER / "texts")


def main(model: str, texts: str) -> None:
    """Estimate the map, and print its effect on held-out sentences."""
    report = interlingua.debias(model, texts, "toy/debiased", overwrite=True)
    print(f"{report.fitted.language_map.rank} directions removed")
    for name, measures in (("before", report.fitted.before), ("after", report.fitted.after)):
        pool = measures.pool
        print(
            f"{name}: {pool.own_pool:.1%} of the translations found in their own language's pool,"
            f" {pool.mixed_pool:.1%} in the pool of all languages"
        )
    vectors = interlingua.load("toy/debiased").encode(["Das Kind singt am Montag im Park."])
    print(f"the new model is used like the old one: a vector of {vectors.shape[1]} elements")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*given[:2]) if len(given) > 1 else main(half_trained(), write_texts())
