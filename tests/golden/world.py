"""A small world in which every verb can run: invented sentences, and the command lines that turn
them into results."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from tests.adapt import invented as small_words
from tests.alignment.invented_documents import contents, write_sides
from tests.conftest import pairs
from tests.mining.invented import corpora, sentence, text

PREPARE = """
output = "corpus"
processes = 1
vocabulary = {size = 60}
validation = {pairs = 20}
[[sources]]
paths = ["bitext/deu-eng.tsv"]
"""
TRAIN = """
[data]
corpus = "corpus"
[encoder]
preset = "ems-tiny"
[method]
name = "ems"
[optimizer]
learning_rate = 5e-4
[run]
output = "run"
max_steps = 120
global_batch_size = 32
precision = "fp32"
device = "cpu"
threads = 1
eval_steps = 60
metric_for_best_model = "tatoeba_accuracy"
"""
NOT_RUN = {
    "info": "it measures this machine; tests/verbs/test_info.py has it",
    "quickstart": "it trains for minutes; tests/quickstart has its parts",
    "serve": "it writes no file; test_serve.py has its answers",
}
"""Verbs without a step, and why."""
WORDS = ["tests.mining.invented:embed", "--backend", "function"]
"""An encoder of invented words, with vectors that lie far apart, so that no processor's rounding
changes a choice."""


def write_inputs(folder: Path) -> None:
    """Write all inputs of the command lines of ``steps``."""
    write = small_words.write_lines
    for code, language in (("deu", "deu_Latn"), ("rus", "rus_Cyrl")):
        rows = [f"{foreign}\t{english}" for foreign, english in pairs(language, 300, seed=0)]
        write(folder / "bitext" / f"{code}-eng.tsv", rows)
        held_out = [f"{foreign}\t{english}" for foreign, english in pairs(language, 40, seed=2)]
        write(folder / "heldout" / "heldout" / f"{code}-eng.tsv", held_out)
    for code in ("deu_Latn", "eng_Latn", "rus_Cyrl"):
        lines = [f"{code[:2]}{n} {code[:2]}{n + 1} {code[:2]}{n % 7}" for n in range(30)]
        write(folder / "flores" / "flores200_devtest" / f"{code}.txt", lines)
        # Invented words are in Latin script, whatever the language.
        write(folder / "texts" / f"{code[:3]}_Latn.txt", lines)
    (folder / "prepare.toml").write_text(PREPARE, encoding="utf-8")
    (folder / "train.toml").write_text(TRAIN, encoding="utf-8")
    sources, targets, aligned = corpora(40, 60)
    write(folder / "a.de", sources)
    write(folder / "a.en", targets)
    write(folder / "gold.tsv", [f"{source + 1}\t{target + 1}" for source, target in aligned])
    draw = random.Random(5)
    known = [sentence(draw) for _ in range(200)]
    write(folder / "known.de-en.tsv", [f"{text(one, 'de')}\t{text(one, 'en')}" for one in known])
    rng = np.random.default_rng(0)
    np.save(
        folder / "index.npy",
        rng.normal(size=(60, 4)).astype("f4") + np.repeat(np.eye(2, 4), 30, axis=0),
    )
    write(folder / "labels.txt", ["de"] * 30 + ["en"] * 30)
    write_sides(folder / "manuals", contents(6))
    small_words.workplace(folder / "small")


def steps() -> dict[str, list[str]]:
    """Return command lines by name, in the order in which they run."""
    model = "run/best"
    mined = [WORDS[0], "a.de", "a.en", *WORDS[1:]]
    small = [
        "small/model",
        "--pairs",
        "small/pairs.eu-en.tsv",
        "--lang",
        "eu",
        "--check",
        "small/check",
    ]
    small += [
        "--epochs",
        "1",
        "--batch-size",
        "16",
        "--heldout",
        "12",
        "--threads",
        "1",
        "--device",
        "cpu",
    ]
    return {
        "look": ["look", "bitext/deu-eng.tsv", "a.de", "a.en", "--json"],
        "prepare": ["prepare", "prepare.toml"],
        "train": ["train", "train.toml"],
        "evaluate pairs": [
            "evaluate",
            model,
            "--data",
            "heldout",
            "-o",
            "reports",
            "--name",
            "tiny",
        ],
        "evaluate lines": [
            "evaluate",
            model,
            "--data",
            "flores",
            "--suite",
            "mixed_pool",
            "-o",
            "reports",
            "--name",
            "tiny",
        ],
        "compare": ["compare", "reports"],
        "analyse": [
            "analyse",
            model,
            "--data",
            "flores",
            "--only",
            "agnosticism,word_order",
            "--set",
            "agnosticism.k=2",
            "-o",
            "analyses",
            "--name",
            "tiny",
        ],
        "embed": ["embed", model, "texts/deu_Latn.txt", "-o", "vectors.npy"],
        "mine": ["mine", *mined, "-o", "mined.tsv", "--threshold", "1.4"],
        "calibrate": [
            "calibrate",
            *mined,
            "-o",
            "calibration.json",
            "--parallel",
            "known.de-en.tsv",
            "--gold",
            "gold.tsv",
        ],
        "mine with a calibration": [
            "mine",
            *mined,
            "-o",
            "likely.tsv",
            "--calibration",
            "calibration.json",
            "--precision",
            "0.9",
        ],
        "score": ["score", WORDS[0], "known.de-en.tsv", *WORDS[1:], "-o", "scored.tsv"],
        "align": [
            "align",
            WORDS[0],
            "a.de",
            "a.en",
            *WORDS[1:],
            "-o",
            "links.align",
            "--texts",
            "linked.tsv",
        ],
        "documents": [
            "documents",
            WORDS[0],
            "manuals/de",
            "manuals/en",
            *WORDS[1:],
            "-o",
            "memory.tsv",
            "--report",
            "memory.html",
            "--write-pairs",
            "paired.tsv",
        ],
        "index": [
            "index",
            "build",
            model,
            "texts/deu_Latn.txt",
            "texts/rus_Latn.txt",
            "-o",
            "index",
        ],
        "search": ["search", "index", "de3 de4 de3", "--per-language", "1"],
        "search words": ["search", "index", "ru5", "--mode", "text", "--top", "4"],
        "search both": ["search", "index", "de3 ru4", "--mode", "hybrid", "--top", "4"],
        "search one language": ["search", "index", "de3 de4", "--languages", "rus_Latn"],
        "debias": ["debias", model, "texts", "-o", "debiased", "--sentences", "24"],
        "debias vectors": [
            "debias",
            "--vectors",
            "index.npy",
            "--labels",
            "labels.txt",
            "-o",
            "debiased-index",
        ],
        "average": ["average", model, "run/model", "-o", "averaged", "--weights", "3,1"],
        "average on data": [
            "average",
            model,
            "run/model",
            "-o",
            "averaged-on-data",
            "--pairs",
            "heldout/heldout",
            "--grid",
            "0,0.5,1",
        ],
        "extend": ["extend", *small, "-o", "extended"],
        "export": ["export", model, "-o", "exported", "--license", "MIT"],
        "export graphs": ["export", model, "-o", "graphs", "--onnx", "--int8"],
        "export token vectors": [
            "export",
            model,
            "-o",
            "static",
            "--static",
            "--corpus",
            "corpus",
            "--set",
            "run.max_steps=5",
        ],
    }
