"""Train an encoder on your own pairs, and see how many held-out translations it finds.

    python examples/train_on_your_pairs.py [PAIRS.de-en.tsv ...]

Each line of a file is a sentence, a tab, and its translation; the languages are in the file's name.
"""

from __future__ import annotations

import sys

import interlingua
import toy


def main(files: list[str]) -> None:
    """Prepare the pairs, train on them and evaluate on the pairs that ``prepare`` held out."""
    if not files:
        toy.write_pairs(toy.FOLDER / "your-pairs", toy.sentences(2000, seed=1))
        files = [str(toy.FOLDER / "your-pairs" / "*.tsv")]
    prepared = interlingua.prepare(
        {
            "output": "toy/your-corpus",
            "processes": 1,
            "vocabulary": {"size": 220},  # some thousands for real text
            "heldout": {"pairs": 50},
            "validation": {"pairs": 50},
            "sources": [{"paths": files}],
        },
        overwrite=True,
    )
    print(f"{prepared.manifest.train:,} pairs to train on")

    config = toy.run("your-run", {"name": "infonce", "temperature": 0.05}, steps=80)
    config["data"]["corpus"] = "toy/your-corpus"
    [trained] = interlingua.train(config, resume="never")
    model = trained.best or trained.model

    [result] = interlingua.evaluate(model, "tatoeba", "toy/your-corpus", output=None, check=False)
    for subset in result.subsets:
        print(f"{subset.name}: {subset.scores['accuracy']:.0%} of the held-out translations found")
    print(f"the model is in {model}")


if __name__ == "__main__":
    main(sys.argv[1:])
