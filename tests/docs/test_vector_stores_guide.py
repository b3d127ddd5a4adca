"""docs/how-to/vector-stores.md: its Python part is run on a tiny model, where the store's client is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from tests.docs.markdown import run_python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "vector-stores.md"
LINES = {"en": ["en1 en2", "en3", "en4 en5 en6"], "de": ["de1 de2", "de3", "de4 de5 de6"]}


def test_qdrant_ranks_as_the_vectors_do(tmp_path, word_vocabulary):
    pytest.importorskip("qdrant_client")
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    encoder = Encoder.from_scratch(config, word_vocabulary)
    encoder.save(tmp_path / "model")
    for language, texts in LINES.items():
        (tmp_path / f"news.{language}.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    names = run_python(PAGE, tmp_path)
    texts = LINES["en"] + LINES["de"]
    order = np.argsort(-(encoder.encode(texts) @ encoder.encode(["en1 en2"])[0]))
    assert [point.payload["text"] for point in names["found"]] == [texts[row] for row in order[:4]]
    german = [texts[row] for row in order if texts[row] in LINES["de"]]
    assert [point.payload["text"] for point in names["only_german"]] == german[:2]
