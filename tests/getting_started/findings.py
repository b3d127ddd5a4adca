"""Findings made up for the tests of what shows them."""

from collections import Counter
from pathlib import Path

from interlingua.getting_started.catalogues import CatalogueSource
from interlingua.getting_started.demo import Demonstration, Neighbor
from interlingua.getting_started.report import QuickstartFindings
from interlingua.getting_started.scores import LanguageScore, averages


def made_up(*, model: float = 0.6, tfidf: float = 0.1) -> QuickstartFindings:
    """Return findings of Greek and Russian, and of German and Turkish, where n-grams win."""
    languages = (
        ("ell_Grek", "Greek", "other"),
        ("rus_Cyrl", "Russian", "other"),
        ("deu_Latn", "German", "latin"),
    )
    scores = [
        LanguageScore(
            code=code,
            name=name,
            script=script,
            kind=kind,
            messages=200,
            random=0.005,
            tfidf=(0.7, 0.7) if script == "latin" else (tfidf, tfidf),
            model=(model, model),
        )
        for kind in ("sentences", "names")
        for code, name, script in languages
    ]
    neighbors = (
        Neighbor(language="Greek", text="Η σελίδα <b>", cosine=0.8, right=True, candidates=200),
        Neighbor(language="Hebrew", text="הדף", cosine=0.4, right=False, candidates=150),
    )
    return QuickstartFindings(
        date="2026-01-02T03:04:05+00:00",
        seconds={"collect": 5.0, "prepare": 15.0, "train": 200.0, "measure": 20.0},
        sources=[
            CatalogueSource(
                name="Django",
                folder=Path("x"),
                license="BSD-3-Clause",
                catalogues=9,
                pairs=1234,
                skipped=Counter(x=3),
            )
        ],
        unavailable={"wagtail": "no matching distribution"},
        languages=3,
        training_pairs=210_000,
        steps=900,
        pairs_seen=230_400,
        parameters=2_300_000,
        loss=[(100, 20.0), (500, 12.0), (900, 10.5)],
        scores=scores,
        averages=averages(scores),
        demonstrations=[Demonstration(query="The page & more", neighbors=neighbors)],
        commands=["interlingua embed model FILE.txt -o FILE.npy"],
        versions={"interlingua": "0.1.0"},
    )
