"""Results for a page, made on the spot: models by how often they are right, with items and wrong
neighbors."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from interlingua.evaluation.scores import Example, Items, SubsetScores, mean_scores
from tests.evaluation import results_made

CODES = ("deu_Latn", "rus_Cyrl", "arb_Arab")


def make(name, share, *, task="tatoeba", pairs=None, seed=0, query="query {item}", **changes):
    """Build a result on X to English, or on the specified ordered ``pairs``.

    ``share`` of 200 items is right.
    """
    rng = np.random.default_rng(seed)
    pairs = pairs or [(code, "eng_Latn") for code in CODES]
    subsets, items, examples = [], {}, {}
    for languages in pairs:
        right = rng.random(200) < share
        subset = "-".join(languages)
        scores = {"accuracy": float(right.mean()), "accuracy_low": 0.0, "accuracy_forward": 0.5}
        subsets.append(SubsetScores(name=subset, languages=languages, pairs=200, scores=scores))
        items[subset] = Items(right.astype(float))
        examples[subset] = tuple(
            Example(
                item,
                query.format(item=item),
                f"expected {item}",
                f"{name} says {item}",
                0.5,
                0.75,
                languages,
            )
            for item in np.flatnonzero(~right)[:5].tolist()
        )
    group = f"all_{len(items)}"
    model = {"name": name, "revision": f"r-{name}", "overrides": [], "pooling": "mean"}
    fields = {
        "dataset": "data",
        "subsets": tuple(subsets),
        "groups": {group: {"accuracy": mean_scores(subsets)["accuracy"]}},
        "members": {group: tuple(items)},
        "items": items,
        "examples": examples,
        "provenance": {"prompt": "", "model": model},
    }
    return dataclasses.replace(results_made.make(name, task=task), **{**fields, **changes})


def all_pairs():
    return list(itertools.permutations(CODES, 2))


def panel(name, value, **changes):
    """Build an analysis with two measures, the first by language and with a table of pairs."""
    items = np.random.default_rng(1).random(300) < value
    measures = [
        {
            "name": "same_language_bias",
            "title": "same-language bias",
            "value": float(items.mean()),
            "unit": "share",
            "better": "lower",
            "ideal": 0.1,
            "low": 0.2,
            "high": 0.3,
            "by_language": {"deu_Latn": 0.25},
            "definition": "how often",
        },
        {
            "name": "hubness",
            "title": "hubness",
            "value": 1.5,
            "unit": "",
            "better": None,
            "ideal": None,
            "low": None,
            "high": None,
            "by_language": {},
            "definition": "how skewed",
        },
    ]
    return {
        "analysis": "agnosticism",
        "version": "1",
        "dataset": "flores",
        "dataset_revision": None,
        "data_sha256": "0" * 64,
        "settings": {},
        "measures": measures,
        "notes": [],
        "tables": {"same_language_bias": {"deu_Latn-rus_Cyrl": 0.5}},
        "items": {"same_language_bias": items.astype(float)},
        "provenance": {"model": {"name": name, "revision": f"r-{name}", "overrides": []}},
        **changes,
    }
