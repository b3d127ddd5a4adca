"""An invented language next to English, a model that knows English letters, and files of both."""

from __future__ import annotations

import random
import string

import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from tests.encoder.growing import unigram
from tests.preparation.conftest import NOUNS, VERBS

WORDS = [*NOUNS.split(), *VERBS.split()]
ENGLISH = ["▁the", "▁", *(f"▁{word}" for word in WORDS), *string.ascii_lowercase, "."]


def sentences(count, *, seed=0):
    """Return distinct English sentences and translations of reversed words with an ending."""
    draw = random.Random(seed)
    nouns, verbs = NOUNS.split(), VERBS.split()
    found = {}
    while len(found) < count:
        words = [draw.choice(part) for part in (nouns, verbs, nouns, nouns, verbs)]
        found[" ".join(["the", *words])] = " ".join(f"{word[::-1]}ak" for word in words)
    return [(other, english) for english, other in found.items()]


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def small_model(folder):
    """Save a tiny encoder that splits the invented language into letters."""
    torch.manual_seed(0)
    vocabulary = unigram(ENGLISH)
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    config = BackboneConfig(
        vocab_size=vocabulary.size, max_position_embeddings=96, hidden_dropout_prob=0.1, **shape
    )
    Encoder.from_scratch(config, vocabulary).save(folder)
    return folder


def workplace(folder):
    """Write a model, pairs, sentences to replay, a check folder and scored pairs."""
    small_model(folder / "model")
    write_lines(
        folder / "pairs.eu-en.tsv", [f"{other}\t{english}" for other, english in sentences(160)]
    )
    write_lines(
        folder / "replay" / "de.txt", [f"das {english}" for _, english in sentences(30, seed=3)]
    )
    for code, start in (("deu", "das"), ("fra", "le")):
        rows = [f"{start} {english[4:]}\t{english}" for _, english in sentences(20, seed=4)]
        write_lines(folder / "check" / f"{code}-eng.tsv", rows)
    rows = [
        f"{n / 2}\t{a[1]}\t{b[1]}"
        for n, (a, b) in enumerate(zip(sentences(10), sentences(10, seed=5), strict=True))
    ]
    write_lines(folder / "sts.en.dev.tsv", rows)
    return folder
