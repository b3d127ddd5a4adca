"""Sentences of a few German and English words, with lengths and numbers as translations have them,
and faults to plant in them."""

from __future__ import annotations

import random

SUBJECTS = [
    ("der Mann", "the man"),
    ("die kleine Frau", "the little woman"),
    ("unser Nachbar", "our neighbor"),
    ("das Kind von nebenan", "the child from next door"),
    ("eine Freundin der Familie", "a friend of the family"),
]
VERBS = [
    ("sieht", "sees"),
    ("kauft heute", "buys today"),
    ("vergisst", "forgets"),
    ("beschreibt sehr genau", "describes very precisely"),
]
OBJECTS = [
    ("das Haus", "the house"),
    ("ein altes Buch", "an old book"),
    ("den Schlüssel für die Tür", "the key for the door"),
    ("die Größe der Straße", "the size of the road"),
    ("nicht viel", "not much"),
]


def german_english(count: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """Return different pairs of one to four clauses, each with its own number."""
    draw = random.Random(seed)
    return [_pair(draw, number) for number in range(1000, 1000 + count)]


def _pair(draw: random.Random, number: int) -> tuple[str, str]:
    clauses = [
        [draw.choice(words) for words in (SUBJECTS, VERBS, OBJECTS)]
        for _ in range(draw.randint(1, 4))
    ]
    german, english = (
        [" ".join(part[side] for part in clause) for clause in clauses] for side in (0, 1)
    )
    return f"{', und '.join(german)} ({number}).", f"{', and '.join(english)} ({number})."


def misread(text: str) -> str:
    """Return UTF-8 that was read as Latin-1."""
    return text.encode("utf-8").decode("latin-1")


def faulty(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return at least 2,000 pairs with a fault of each kind but an order, see the comments."""
    rows = list(pairs)
    # The sides are swapped in a part.
    rows[200:260] = [row[::-1] for row in rows[200:260]]
    # UTF-8 that was read in another character set.
    rows[300:330] = [(misread(source), target) for source, target in rows[300:330]]
    # Copies, duplicates and empty sides.
    rows[400:450] = [(source, source) for source, _ in rows[400:450]]
    rows[500:550] = rows[600:650]
    rows[700:705] = [(source, "") for source, _ in rows[700:705]]
    # From here on a target is one too far down.
    targets = [target for _, target in rows]
    slipped = [*targets[:1500], "one sentence too many.", *targets[1500:-1]]
    rows = [(source, target) for (source, _), target in zip(rows, slipped, strict=True)]
    return [("source_sentence", "target_sentence"), *rows]


def write_rows(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path
