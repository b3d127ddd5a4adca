"""Align made subtitle files by meaning alone, and by meaning and time.

python benchmarks/align_subtitles.py MODEL SOURCE.txt TARGET.txt [--cues 400]

SOURCE.txt and TARGET.txt have a translation per line, such as two files of FLORES-200. Every
fourth cue is a short answer that occurs many times, as in dialogues. The target is then changed:
its times by an offset, another frame rate or a cut, and its cues are joined, split or left out.
Some are left out of the source, too.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import interlingua
from interlingua.alignment.align import Aligner
from interlingua.alignment.sentence_alignment import AlignConfig, Link, LinkCounts

ANSWERS = (
    ("Ja.", "Yes."), ("Nein.", "No."), ("Was?", "What?"), ("Warum?", "Why?"), ("Danke.", "Thanks."),
    ("Komm.", "Come on."), ("Wirklich?", "Really?"), ("Hallo!", "Hello!"), ("Gut.", "Good."),
)  # fmt: skip
FILM = 24 / 1.001


class MadeCue(NamedTuple):
    """A cue with the units of the film that it has."""

    text: str
    start: float
    end: float
    units: tuple[int, ...]


class Change(NamedTuple):
    """Changes of a film's translation."""

    offset: float = 0.0
    rate: float = 1.0
    cut: float = 0.0
    joined: float = 0.0
    split: float = 0.0
    missing: float = 0.0


CHANGES = {
    "same times": Change(),
    "offset 12.3 s": Change(offset=12.3),
    "25 / 23.976": Change(rate=FILM / 25),
    "cut of 40 s": Change(cut=40),
    "joined and split": Change(joined=0.15, split=0.15),
    "missing": Change(missing=0.12),
    "all": Change(offset=-7.9, rate=25 / FILM, cut=40, joined=0.15, split=0.15, missing=0.12),
}


def film(lines: list[tuple[str, str]], draw: random.Random) -> list[tuple[str, str, float, float]]:
    """Return the units of a film: both texts, start and end in seconds."""
    units = []
    now = 20.0
    for number, texts in enumerate(lines):
        one = draw.choice(ANSWERS) if number % 4 == 3 else texts
        length = 0.8 + 0.055 * len(one[0])
        units.append((*one, now, now + length))
        now += length + draw.choice((0.1, 0.1, 0.4, 2.5))
    return units


def cues_of(units, side: int, change: Change, draw: random.Random) -> list[MadeCue]:
    """Return the cues of one side."""
    cues = [MadeCue(unit[side], unit[2], unit[3], (at,)) for at, unit in enumerate(units)]
    cues = [cue for cue in cues if draw.random() >= change.missing]
    found: list[MadeCue] = []
    for cue in cues:
        words = cue.text.split()
        last = found[-1] if found else None
        is_joined = draw.random() < change.joined
        if is_joined and last and last.units == (cue.units[0] - 1,):
            text = f"{last.text} {cue.text}"
            found[-1] = MadeCue(text, last.start, cue.end, last.units + cue.units)
            continue
        if len(words) > 5 and draw.random() < change.split:
            at = len(words) // 2
            half = cue.start + (cue.end - cue.start) * len(" ".join(words[:at])) / len(cue.text)
            found.append(MadeCue(" ".join(words[:at]), cue.start, half, cue.units))
            found.append(MadeCue(" ".join(words[at:]), half, cue.end, cue.units))
            continue
        found.append(cue)
    return found


def moved(cues: list[MadeCue], change: Change, draw: random.Random) -> list[MadeCue]:
    """Return the cues with other times."""
    middle = cues[len(cues) // 2].start
    found = []
    for cue in cues:
        later = change.offset + (change.cut if cue.start >= middle else 0.0)
        start, end = (
            change.rate * time + later + draw.uniform(-0.15, 0.15) for time in (cue.start, cue.end)
        )
        found.append(cue._replace(start=start, end=max(end, start + 0.2)))
    return found


def gold_links(source: list[MadeCue], target: list[MadeCue]) -> list[Link]:
    """Return the links of cues that have a unit in common."""
    links: list[tuple[set[int], set[int]]] = []
    of_unit: dict[int, list[set[int]]] = {}
    for side, cues in enumerate((source, target)):
        for number, cue in enumerate(cues):
            for unit in cue.units:
                of_unit.setdefault(unit, [set(), set()])[side].add(number)
    for own, other in of_unit.values():
        for link in [one for one in links if one[0] & own or one[1] & other]:
            own, other = own | link[0], other | link[1]
            links.remove(link)
        links.append((own, other))
    found = []
    for own, other in links:
        if own and other:
            found.append(Link(tuple(sorted(own)), tuple(sorted(other)), 0.0))
        else:
            found += [Link((one,), (), 0.0) for one in own]
            found += [Link((), (one,), 0.0) for one in other]
    return found


def main() -> None:
    """Print a table of F1 by change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--cues", type=int, default=400)
    parser.add_argument("--weights", default="0,0.5")
    parser.add_argument("--changes", default="", help="some of the table's, with commas")
    options = parser.parse_args()
    texts = [
        path.read_text(encoding="utf-8").splitlines() for path in (options.source, options.target)
    ]
    lines = list(zip(*texts, strict=True))[: options.cues]
    encode = interlingua.load(options.model).encode
    known: dict[str, np.ndarray] = {}

    def embed(some, *, language=None, report=None):
        new = [text for text in dict.fromkeys(some) if text not in known]
        if new:
            known.update(zip(new, encode(new, normalize_embeddings=True), strict=True))
        return np.stack([known[text] for text in some])

    weights = [float(weight) for weight in options.weights.split(",")]
    print("| change | cues | " + " | ".join(f"strict F1, weight {one:g}" for one in weights) + " |")
    for name in options.changes.split(",") if options.changes else CHANGES:
        change = CHANGES[name]
        draw = random.Random(0)
        units = film(lines, draw)
        source = cues_of(units, 0, replace_times(change), draw)
        target = moved(cues_of(units, 1, change, draw), change, draw)
        gold = gold_links(source, target)
        scores = []
        for weight in weights:
            aligner = Aligner(embed, replace(AlignConfig(), times=weight))
            spans = tuple(np.array([(c.start, c.end) for c in side]) for side in (source, target))
            sentences = ([cue.text for cue in side] for side in (source, target))
            links = aligner.links(*sentences, spans=spans)
            counts = LinkCounts.of(links, gold)
            scores.append(f"{counts.strict_scores.f1:.4f} (lax {counts.lax_scores.f1:.4f})")
        print(f"| {name} | {len(source)}, {len(target)} | " + " | ".join(scores) + " |", flush=True)


def replace_times(change: Change) -> Change:
    """Return the changes of the source's cues: only some are missing."""
    return Change(missing=change.missing / 2)


if __name__ == "__main__":
    main()
