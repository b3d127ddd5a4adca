"""models/mini, the distribution of the default model: its package, its license and its model."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tomllib
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest

from interlingua.config.registry import DEFAULT_MODEL, MODELS, import_place
from interlingua.encoder.directories.model_directory import read_json
from interlingua.encoder.encoder import Encoder
from tests.distributions import build_wheel
from tests.models import needs_weights

ROOT = Path(__file__).resolve().parents[2]
MINI = ROOT / "models" / "mini"
PACKAGE = MINI / "src" / "interlingua_mini"
MODEL = PACKAGE / "model"
PROJECT = tomllib.loads((MINI / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_BYTES = 60_000_000


@pytest.fixture
def wheel(tmp_path):
    """The files of the wheel."""
    pytest.importorskip("hatchling")
    with zipfile.ZipFile(build_wheel(MINI, tmp_path)) as archive:
        yield archive


@pytest.fixture
def importable(monkeypatch):
    """The package of this checkout can be imported."""
    monkeypatch.syspath_prepend(MINI / "src")
    for name in [name for name in sys.modules if name.startswith("interlingua_mini")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def stock(importable):
    """The model as it is unpacked."""
    from interlingua_mini import folder

    return folder()


@needs_weights("mini")
def test_the_entry_point_leads_to_the_folder_of_the_model(importable):
    [(name, place)] = PROJECT["entry-points"][MODELS].items()
    assert name == DEFAULT_MODEL
    assert {path.name for path in import_place(place)().iterdir()} >= {
        "config.json",
        "tokenizer.json",
        "model.safetensors",
    }


def test_versions_and_the_extra_agree():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert PROJECT["dynamic"] == ["version"]
    assert [entry.partition(">")[0] for entry in extras[DEFAULT_MODEL]] == [PROJECT["name"]]


def test_the_wheel_holds_the_package_and_both_copyrights(wheel):
    names = wheel.namelist()
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(PACKAGE.parent).as_posix() in names
    [license] = [wheel.read(name).decode() for name in names if name.endswith("LICENSE")]
    assert "Copyright (c) Microsoft Corporation" in license
    assert "The interlingua authors" in license
    assert "MIT License" in license


def test_the_files_of_the_wheel_are_small(wheel):
    assert sum(entry.file_size for entry in wheel.infolist()) <= MOST_BYTES


@needs_weights("mini")
def test_the_digest_is_that_of_the_files():
    whole = hashlib.sha256()
    for path in sorted(
        path for path in MODEL.rglob("*") if path.is_file() and path.name != "packed.sha256"
    ):
        whole.update(path.relative_to(MODEL).as_posix().encode() + b"\0" + path.read_bytes())
    assert (MODEL / "packed.sha256").read_text(encoding="ascii").strip() == whole.hexdigest()


@needs_weights("mini")
def test_the_model_needs_no_prompt_and_can_be_cut(stock):
    encoder = Encoder.load(stock)
    assert encoder.settings.prompts == {}
    assert encoder.settings.default_prompt is None
    assert encoder.dim == 384
    german, english = (
        ["Wo ist der Bahnhof?", "Das Kind singt."],
        ["Where is the station?", "The child sings."],
    )
    for dim in (None, 256, 128, 64):
        similarities = (
            encoder.encode(german, truncate_dim=dim) @ encoder.encode(english, truncate_dim=dim).T
        )
        assert similarities.argmax(axis=1).tolist() == [0, 1]


@needs_weights("mini")
def test_sentence_transformers_reads_the_same_vectors(stock):
    library = pytest.importorskip("sentence_transformers")
    texts = ["Wo ist der Bahnhof?", "駅はどこですか。", "أين المحطة؟"]
    theirs = library.SentenceTransformer(str(stock), device="cpu").encode(
        texts, normalize_embeddings=True
    )
    assert np.allclose(Encoder.load(stock).encode(texts), theirs, atol=1e-5)


@needs_weights("mini")
def test_the_card_names_sources_licenses_and_the_cost():
    card = (MODEL / "README.md").read_text(encoding="utf-8")
    assert 'license: "mit"' in card
    for heading in ("## Training data", "## Languages", "## Cost"):
        assert heading in card
    assert "docs/results.md" in card
    assert hashlib.sha256((MODEL / "packed.safetensors").read_bytes()).hexdigest() in card
    assert read_json(MODEL / "config_sentence_transformers.json")["prompts"] == {}


@needs_weights("mini")
def test_both_cards_have_the_numbers_of_the_results(monkeypatch):
    """Check the cards. If they differ, run experiments/mini/card_numbers.py."""
    path = ROOT / "experiments" / "mini" / "card_numbers.py"
    spec = importlib.util.spec_from_file_location("card_numbers", path)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the script adds
    spec.loader.exec_module(script)
    results = script.results_text()
    for card in script.CARDS:
        text = card.path.read_text(encoding="utf-8")
        table = script.table_of(card, results)
        assert table.count("\n") > 10
        assert script.with_numbers(text, table) == text


@needs_weights("mini")
@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Библиотека закрыта по воскресеньям.", "БИБЛИОТЕКА ЗАКРЫТА ПО ВОСКРЕСЕНЬЯМ."),
        ("Kütüphane pazar günleri kapalıdır.", "KÜTÜPHANE PAZAR GÜNLERİ KAPALIDIR."),
        (
            "도서관은 일요일에 문을 닫습니다.",
            unicodedata.normalize("NFD", "도서관은 일요일에 문을 닫습니다."),
        ),
        ("المكتبة مغلقة يوم الأحد.", "الْمَكْتَبَةُ مُغْلَقَةٌ يَوْمَ الْأَحَدِ."),
        (
            "Die Bibliothek ist geschlossen.",
            "Die Bib\u00adlio\u00adthek ist ge\u00adschlos\u00adsen.",
        ),
    ],
)
def test_forms_of_a_text_have_one_vector(stock, text, form):
    one, other = Encoder.load(stock).encode([text, form])
    assert one @ other > 0.999
