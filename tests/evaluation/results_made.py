"""Results made on the spot."""

from __future__ import annotations

import numpy as np

from interlingua.evaluation.scores import Items, SubsetScores, TaskResult


def make(
    name="a_model",
    *,
    task="tatoeba",
    scores=(0.9, 0.5),
    higher=True,
    revision=None,
    overrides=(),
    training=None,
    items=None,
    groups=None,
    **changes,
):
    """Build results of German and Russian with these scores, or with specified items."""
    metric = "accuracy" if higher else "xsim"
    names = ("deu-eng", "rus-eng")
    if items is not None:
        scores = [np.mean(values) for values in items]
    subsets = tuple(
        SubsetScores(
            name=pair, languages=(code, "eng_Latn"), pairs=10, scores={metric: float(score)}
        )
        for pair, code, score in zip(names, ("deu_Latn", "rus_Cyrl"), scores, strict=True)
    )
    mean = float(np.mean(scores))
    fields = {
        "task": task,
        "version": "1",
        "main_metric": metric,
        "higher_is_better": higher,
        "dataset": "d",
        "data_sha256": "f" * 64,
        "data_revision": None,
        "settings": {},
        "changed": (),
        "subsets": subsets,
        "groups": groups or {"all_2": {metric: mean}, "latin_script_1": {metric: float(scores[0])}},
        "members": {"all_2": names, "latin_script_1": names[:1]},
        "seconds": 1.0,
        "items": {}
        if items is None
        else {n: Items(np.array(v, float)) for n, v in zip(names, items, strict=True)},
        "provenance": {
            "prompt": "",
            "model": {
                "name": name,
                "revision": revision or f"r-{name}",
                "overrides": list(overrides),
                "training": training,
            },
        },
    }
    return TaskResult(**{**fields, **changes})


def values(table):
    """Return the rounded numbers of a table by row."""
    return {row.name: [cell and round(cell.value, 6) for cell in row.cells] for row in table.rows}
