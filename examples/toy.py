"""A small world for the examples: sentences in three languages, and a model trained on them.

The German, English and Spanish sentences are of one form.

Everything is made in the folder ``toy`` of the working directory, in some seconds, without a
network. The model knows these sentences and no others; give an example the folder of a real model
to use it on real text.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import interlingua

FOLDER = Path("toy")
LANGUAGES = ("de", "en", "es")
PERSONS = [
    ("Der Arzt", "The doctor", "El médico"),
    ("Die Lehrerin", "The teacher", "La profesora"),
    ("Mein Bruder", "My brother", "Mi hermano"),
    ("Meine Schwester", "My sister", "Mi hermana"),
    ("Unser Nachbar", "Our neighbor", "Nuestro vecino"),
    ("Der Koch", "The cook", "El cocinero"),
    ("Die Künstlerin", "The artist", "La artista"),
    ("Das Kind", "The child", "El niño"),
]
VERBS = [
    ("liest", "reads", "lee"),
    ("schreibt", "writes", "escribe"),
    ("singt", "sings", "canta"),
    ("wartet", "waits", "espera"),
    ("arbeitet", "works", "trabaja"),
    ("schläft", "sleeps", "duerme"),
    ("tanzt", "dances", "baila"),
    ("kocht", "cooks", "cocina"),
]
DAYS = [
    ("am Montag", "on Monday", "el lunes"),
    ("am Dienstag", "on Tuesday", "el martes"),
    ("am Mittwoch", "on Wednesday", "el miércoles"),
    ("am Donnerstag", "on Thursday", "el jueves"),
    ("am Freitag", "on Friday", "el viernes"),
    ("am Samstag", "on Saturday", "el sábado"),
    ("am Sonntag", "on Sunday", "el domingo"),
]
PLACES = [
    ("in der Küche", "in the kitchen", "en la cocina"),
    ("im Garten", "in the garden", "en el jardín"),
    ("am Bahnhof", "at the station", "en la estación"),
    ("im Büro", "in the office", "en la oficina"),
    ("am Fluss", "by the river", "junto al río"),
    ("im Park", "in the park", "en el parque"),
    ("in der Stadt", "in town", "en la ciudad"),
    ("zu Hause", "at home", "en casa"),
]


def sentences(count: int, *, seed: int) -> list[dict[str, str]]:
    """Return different sentences, at most 3,584, each in all languages.

    The result is ``{"de": ..., "en": ..., "es": ...}``.
    """
    all_parts = list(itertools.product(PERSONS, VERBS, DAYS, PLACES))
    rows = []
    for parts in random.Random(seed).sample(all_parts, count):
        row = {}
        for column, code in enumerate(LANGUAGES):
            row[code] = " ".join(part[column] for part in parts) + "."
        rows.append(row)
    return rows


def write_lines(path: Path, lines: list[str]) -> Path:
    """Write a text file with a line for each text, and its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_pairs(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write pairs with English: ``de-en.tsv`` and ``es-en.tsv``."""
    for code in ("de", "es"):
        write_lines(folder / f"{code}-en.tsv", [f"{row[code]}\t{row['en']}" for row in rows])


def train(config: dict[str, Any]) -> Path:
    """Train a model and return its folder."""
    [result] = interlingua.train(config)
    return Path(result.best or result.model)


def corpus() -> Path:
    """Prepare the corpus of toy sentences at the first call, and return its folder."""
    folder = FOLDER / "corpus"
    if not folder.exists():
        write_pairs(FOLDER / "bitext", sentences(1500, seed=0))
        interlingua.prepare(
            {
                "output": str(folder),
                "processes": 1,
                "vocabulary": {"size": 220},
                "validation": {"pairs": 50},
                "sources": [{"paths": [str(FOLDER / "bitext" / "*.tsv")]}],
            }
        )
    return folder


def run(name: str, method: dict[str, Any], *, steps: int) -> dict[str, Any]:
    """Return the config of a run in ``toy/<name>``. 60 steps take about five seconds."""
    return {
        "data": {"corpus": str(corpus())},
        "encoder": {
            "preset": "ems-small",
            "initialization": "bert",
            "hidden_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 128,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "max_position_embeddings": 64,
        },
        "method": method,
        "optimizer": {"learning_rate": 1e-2},
        "run": {
            "output": str(FOLDER / name),
            "max_steps": steps,
            "global_batch_size": 64,
            "eval_steps": steps,
            "device": "cpu",
            "threads": 1,
            "precision": "fp32",
        },
    }


def model() -> Path:
    """Train the small model at the first call, and return its folder."""
    folder = FOLDER / "model" / "model"
    return (
        folder
        if folder.exists()
        else train(run("model", {"name": "infonce", "temperature": 0.05}, steps=80))
    )
