import random

import numpy as np
import pytest

from interlingua.corpus.cleaning.keys import text_keys
from interlingua.preparation.config import (
    PrepareConfig,
    SourceConfig,
    SplitConfig,
    VocabularyConfig,
)
from interlingua.preparation.shards import Fate, Shard

NOUNS = "tree house river stone cloud bread knife wheel horse apple chair table"
VERBS = "sees finds takes keeps moves loses makes holds"
PAIR = ("deu_Latn", "eng_Latn")


def sentences(number, seed=0, extra=""):
    """Return distinct English sentences with word-by-word 'German' and 'French': clean pairs."""
    draw = random.Random(seed)
    nouns, verbs = NOUNS.split(), VERBS.split()
    found = {}
    while len(found) < number:
        words = [draw.choice(kind) for kind in (nouns, verbs, nouns, nouns, verbs)]
        english = " ".join(["the", *words]) + extra
        german = " ".join(f"{word}en" for word in words)
        french = " ".join(f"{word}eau" for word in words)
        found[english] = (english, german, french)
    return list(found.values())


def write_tsv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(map(str, row)) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path):
    """Two sources: de-en with 300 pairs and en-fr with the 300 translations of the same English
    sentences."""
    rows = sentences(300)
    folder = tmp_path / "data"
    write_tsv(folder / "de-en.news.tsv", [(german, english) for english, german, _ in rows])
    write_tsv(folder / "en-fr.talks.tsv", [(english, french) for english, _, french in rows])
    return folder


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


def shard_of(folder, number, rows, *, pair=PAIR, source_index=0, keys=None, words=9):
    """Write a shard of (source, target) rows, all of them for training.

    The keys are those of the texts, or given as two lists.
    """
    shard = Shard(folder, number, source_index, pair)
    text = "".join(f"{a}\t{b}\n" for a, b in rows).encode()
    if keys is None:
        keys = [text_keys(side) for side in zip(*rows, strict=True)]
    keys = [np.array(side, np.uint64) for side in keys]
    shard.append(text, *keys, np.broadcast_to(np.uint8(words), len(rows)).copy())
    shard.fates = np.zeros(len(rows), np.uint8)
    return shard


@pytest.fixture
def shards(tmp_path):
    found = []
    for number, code in enumerate(("deu_Latn", "fra_Latn")):
        rows = [(row[1 + number], row[0]) for row in sentences(100)]
        pair = (code, "eng_Latn")
        shard = shard_of(tmp_path, number, rows, pair=pair, source_index=number)
        shard.fates[3:5] = Fate.valid
        found.append(shard)
    return found
