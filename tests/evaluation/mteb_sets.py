"""Local sets that mteb's tasks can be run on, small, in the layouts of ours."""

from __future__ import annotations

import random

from tests.evaluation.files import write_rows
from tests.evaluation.tasks.translation.test_bucc import write_split


def sentences(count, *, seed, language):
    draw = random.Random(f"{seed}{language}")
    return [
        " ".join(f"{language}{draw.randrange(40)}" for _ in range(draw.randint(2, 7)))
        for _ in range(count)
    ]


def write_sts(path, seed, languages=("de", "en"), count=60):
    first, second = (
        sentences(count, seed=f"{seed}{n}", language=code) for n, code in enumerate(languages)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    gold = [random.Random(f"{seed}{n}").randrange(11) / 2 for n in range(count)]
    path.write_text(
        "".join(f"{g}\t{a}\t{b}\n" for g, a, b in zip(gold, first, second, strict=True))
    )


def write_all(data):
    """Write STS17 (with a reversed set), STS benchmark, STS13, STS15, SICK, Tatoeba and BUCC."""
    for name in (
        "sts17/track5.en-en",
        "sts17/track2.ar-en",
        "sts17/track4a.es-en",
        "stsb/en.test",
        "sick/test",
    ):
        write_sts(data / f"{name}.tsv", name)
    (data / "sts17" / "STS.en-fr.txt").write_text("de1 de2\ten1 en3\t2\nde4\ten1\t1\nde2\ten2\t4\n")
    for name in ("2013.FNWN", "2013.OnWN", "2015.belief"):
        write_sts(data / "sts12_16" / f"{name}.tsv", name)
    for name in ("sick/train", "sick/dev"):
        write_sts(data / f"{name}.tsv", name, count=20)
    (data / "tatoeba_laser").mkdir()
    for code in ("deu", "cmn"):
        pairs = zip(
            sentences(50, seed=code, language="de"),
            sentences(50, seed=code, language="en"),
            strict=True,
        )
        write_rows(data / "tatoeba_laser" / f"{code}-eng.tsv", (f"{a}\t{b}" for a, b in pairs))
    gold = [(3, 8), (10, 2), (4, 30), (40, 3), (7, 12), (20, 9)]
    sides = sentences(50, seed=1, language="de"), sentences(70, seed=1, language="en")
    write_split(data / "bucc", "zh-en.training", *sides, gold)
    return data
