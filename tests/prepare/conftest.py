import random

import numpy as np
import pytest

from interlingua.prepare.config import PrepareConfig, SourceConfig, SplitConfig, VocabularyConfig
from interlingua.prepare.shards import Fate, Shard

NOUNS = [
    "tree",
    "house",
    "river",
    "stone",
    "cloud",
    "bread",
    "knife",
    "wheel",
    "horse",
    "apple",
    "chair",
    "table",
]
VERBS = ["sees", "finds", "takes", "keeps", "moves", "loses", "makes", "holds"]


def sentences(number, seed=0, extra=""):
    """Distinct English sentences and word-by-word 'German' and 'French' ones, so that every pair is
    clean."""
    draw = random.Random(seed)
    found = {}
    while len(found) < number:
        words = [
            draw.choice(NOUNS),
            draw.choice(VERBS),
            draw.choice(NOUNS),
            draw.choice(NOUNS),
            draw.choice(VERBS),
        ]
        english = " ".join(["the", *words]) + extra
        found[english] = (
            " ".join(f"{word}en" for word in words),
            " ".join(f"{word}eau" for word in words),
        )
    return [(english, german, french) for english, (german, french) in found.items()]


def write_tsv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path):
    """Two sources: de-en with 300 pairs and en-fr with the 300 translations of the same English
    sentences."""
    rows = sentences(300)
    write_tsv(
        tmp_path / "data" / "de-en.news.tsv", [(german, english) for english, german, _ in rows]
    )
    write_tsv(
        tmp_path / "data" / "en-fr.talks.tsv", [(english, french) for english, _, french in rows]
    )
    return tmp_path / "data"


def config_for(folder, corpus, **changes):
    values = {
        "output": folder / "prepared",
        "sources": (
            SourceConfig(paths=(corpus / "*.news.tsv",), name="news", license="CC0"),
            SourceConfig(paths=(corpus / "*.talks.tsv",), name="talks"),
        ),
        "heldout": SplitConfig(pairs=20),
        "validation": SplitConfig(pairs=10),
        "vocabulary": VocabularyConfig(size=120),
        "processes": 1,
    }
    return PrepareConfig(**(values | changes))


@pytest.fixture
def shards(tmp_path):
    found = []
    for number, code in enumerate(("deu_Latn", "fra_Latn")):
        rows = [(row[1 + number], row[0]) for row in sentences(100)]
        shard = Shard(tmp_path, number, number, (code, "eng_Latn"))
        keys = np.arange(100, dtype=np.uint64)
        text = "".join(f"{a}\t{b}\n" for a, b in rows).encode()
        shard.append(text, keys + np.uint64(1000 * (number + 1)), keys, np.zeros(100, np.uint8))
        shard.fates = np.zeros(100, np.uint8)
        shard.fates[3:5] = Fate.valid
        found.append(shard)
    return found
