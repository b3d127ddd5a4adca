"""models/nano, the distribution of the token vectors: its package, its license and its model."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import interlingua
from interlingua.config.registry import MODELS, import_place
from interlingua.encoder.encoder import Encoder
from tests.distributions import build_wheel
from tests.models import needs_weights

ROOT = Path(__file__).resolve().parents[2]
NANO = ROOT / "models" / "nano"
PACKAGE = NANO / "src" / "interlingua_nano"
PROJECT = tomllib.loads((NANO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_BYTES = 40_000_000
TRANSLATIONS = {
    "The dog is sleeping.": [
        "Der Hund schläft im Garten.",
        "El perro duerme en el jardín.",
        "犬が庭で寝ている。",
    ],
    "Where is the train station?": [
        "Wo ist der Bahnhof?",
        "¿Dónde está la estación de tren?",
        "駅はどこですか。",
    ],
    "I would like a glass of water.": [
        "Ich hätte gern ein Glas Wasser.",
        "Quisiera un vaso de agua.",
        "水を一杯ください。",
    ],
}


@pytest.fixture
def folder(monkeypatch):
    """The model's, by the entry point of the package."""
    monkeypatch.syspath_prepend(NANO / "src")
    [(name, place)] = PROJECT["entry-points"][MODELS].items()
    assert name == "nano"
    return import_place(place)()


def test_versions_and_the_extra_agree():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert PROJECT["dynamic"] == ["version"]
    assert [entry.partition(">")[0] for entry in extras["nano"]] == [PROJECT["name"]]


def test_the_wheel_is_small_and_holds_the_package_and_both_copyrights(tmp_path):
    pytest.importorskip("hatchling")
    with zipfile.ZipFile(build_wheel(NANO, tmp_path)) as archive:
        names = archive.namelist()
        for file in PACKAGE.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert file.relative_to(PACKAGE.parent).as_posix() in names
        assert sum(entry.file_size for entry in archive.infolist()) <= MOST_BYTES
        [license] = [archive.read(name).decode() for name in names if name.endswith("LICENSE")]
    assert "Copyright (c) Microsoft Corporation" in license
    assert "The interlingua authors" in license


@needs_weights("nano")
def test_translations_are_nearest_without_a_prompt(folder):
    encoder = Encoder.load(folder)
    assert (encoder.dim, encoder.settings.prompts, encoder.settings.default_prompt) == (
        256,
        {},
        None,
    )
    english = encoder.encode(list(TRANSLATIONS))
    for others in zip(*TRANSLATIONS.values(), strict=True):
        assert (encoder.encode(list(others)) @ english.T).argmax(axis=1).tolist() == [0, 1, 2]


@needs_weights("nano")
def test_sentence_transformers_reads_the_same_vectors(folder, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    interlingua.export(folder, output=tmp_path / "float32", verify=False)
    texts = [text for others in TRANSLATIONS.values() for text in others]
    ours = Encoder.load(folder).encode(texts)
    whole = library.SentenceTransformer(str(tmp_path / "float32"), device="cpu").encode(texts)
    assert np.allclose(ours, whole, atol=1e-5)
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(
        texts, normalize_embeddings=True
    )
    assert (ours * theirs).sum(axis=1).min() > 0.999  # it leaves the scales of tokens out


@needs_weights("nano")
def test_the_card_names_sources_and_licenses(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'license: "mit"' in card
    for heading in ("## Training data", "## Languages"):
        assert heading in card
    assert "tatoeba_challenge | CC-BY 2.0 FR" in card
    assert "qa_squad_fi_en | CC-BY-SA 4.0; machine-translated" in card
    assert "Left out: Pirá" in card
