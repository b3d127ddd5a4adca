"""experiments/mini/ship.py and rounding.py: what becomes of a trained model before it is packaged."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from interlingua.corpus.manifest import LanguagePairRecord, Manifest, SourceRecord
from interlingua.encoder.backbone import Backbone, BackboneConfig
from interlingua.encoder.directory import read_json
from interlingua.encoder.encoder import Encoder
from interlingua.errors import InterlinguaError
from interlingua.export.compact import FLOAT8, rounded_encoder
from interlingua.export.verify import SAMPLES
from tests.export.conftest import framed  # noqa: F401

FOLDER = Path(__file__).resolve().parents[1] / "experiments" / "mini"


@pytest.fixture(scope="module")
def scripts():
    """ship.py and rounding.py as modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("ship"), importlib.import_module("rounding")
        for name in ("ship", "rounding"):
            del sys.modules[name]


@pytest.fixture
def encoder(framed):  # noqa: F811
    """A tiny model that sentence-transformers reads, too."""
    torch.manual_seed(0)
    config = BackboneConfig(
        vocab_size=framed.size, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, type_vocab_size=2, pad_token_id=framed.pad_id,
    )  # fmt: skip
    encoder = Encoder(Backbone(config), framed).eval()
    settings = {"prompts": {"query": "The "}, "include_special": True}
    encoder.settings = dataclasses.replace(encoder.settings, **settings)
    return encoder


def texts(first, count=60, languages=("deu_Latn", "eng_Latn", "fra_Latn")):
    """Sentences of nine words, drawn from those that the vocabulary was trained on."""
    words = " ".join(text for language in languages for text in SAMPLES[language][:2]).split()
    draw = np.random.default_rng(first)
    return [" ".join(words[place] for place in draw.integers(0, len(words), 9)) for _ in range(count)]


def is_float8(tensor):
    return torch.equal(tensor.to(FLOAT8).float(), tensor)


def test_products_stay_closer_than_with_the_nearest_values(scripts):
    _, rounding = scripts
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 8, generator=draw) @ torch.randn(8, 24, generator=draw)
    inputs += 0.1 * torch.randn(200, 24, generator=draw)  # 24 numbers of which 8 decide the others
    weight = 0.1 * torch.randn(16, 24, generator=draw)
    found = rounding.fit_matrix(weight, inputs)
    assert is_float8(found)
    exact = inputs @ weight.T
    nearest = (inputs @ weight.to(FLOAT8).float().T - exact).square().mean()
    assert (inputs @ found.T - exact).square().mean() < 0.5 * nearest


def test_with_unrelated_inputs_each_weight_is_rounded_alone(scripts):
    _, rounding = scripts
    weight = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    assert torch.equal(rounding.fit_matrix(weight, torch.eye(6)), weight.to(FLOAT8).float())


def test_a_rounded_encoder_stays_closer_on_other_texts(scripts, encoder):
    _, rounding = scripts
    before = {name: tensor.clone() for name, tensor in encoder.backbone.state_dict().items()}
    found = rounding.rounded(encoder, texts(1, 200))
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.backbone.state_dict().items())
    matrices = [tensor for tensor in found.backbone.state_dict().values() if tensor.ndim == 2 and len(tensor) > 2]
    assert len(matrices) == 2 + 2 * 6
    assert all(map(is_float8, matrices))
    other = texts(2)
    exact, fitted, nearest = (one.encode(other) for one in (encoder, found, rounded_encoder(encoder)))
    assert 1 - (exact * fitted).sum(axis=1).mean() < 0.6 * (1 - (exact * nearest).sum(axis=1).mean())


@pytest.fixture
def given(tmp_path, encoder):
    """A trained model, the corpus and the run that it is from, and bitext."""
    encoder.save(tmp_path / "run" / "best")
    (tmp_path / "run" / "config.toml").write_text('[data]\n[method]\nname = "anchor"\n[run]\nseed = 0\n')
    final = {"kind": "final", "step": 12, "seconds": 7200.0, "cpu_seconds": 3600.0, "pairs": 3456}
    (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps(final) + "\n")
    (tmp_path / "corpus").mkdir()
    tales = SourceRecord(
        name="tales", license="CC0", files=(), read=10, skipped={}, dropped={}, train=10, valid=0, heldout=0
    )
    german = LanguagePairRecord(source="deu_Latn", target="eng_Latn", train=10, valid=0, heldout=0, dropped={})
    manifest = Manifest(
        created="", versions={}, config={}, sources=(tales,), language_pairs=(german,), dropped={}, decontaminated={},
        vocabulary={}, tokens={}, seconds={},
    )  # fmt: skip
    manifest.save(tmp_path / "corpus")
    sides = zip(texts(3, 40, ["deu_Latn"]), texts(4, 40, ["eng_Latn"]), strict=True)
    (tmp_path / "a.de-en.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in sides))
    return tmp_path


def line(folder, *more):
    trained = folder / "run" / "best"
    run = ["--run", folder / "run", "--texts", folder / "*.tsv"]
    return [str(word) for word in (trained, "-o", folder / "out", "--corpus", folder / "corpus", *run, *more)]


def test_what_is_shipped_has_no_prompt_and_a_card(scripts, given, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("sentence_transformers")
    ship, _ = scripts
    ship.main(line(given))
    assert re.fullmatch(r".*/out: 0\.\d MB", capsys.readouterr().out.splitlines()[-1])
    out = given / "out"
    assert read_json(out / "config_sentence_transformers.json")["prompts"] == {}
    assert Encoder.load(out).settings.prompts == {}
    assert {path.name for path in (out / "onnx").iterdir()} >= {"model.onnx", "model_quantized.onnx"}
    card = (out / "README.md").read_text()
    assert "| tales | CC0 | 10 |" in card
    assert "German (deu_Latn)" in card
    assert "| run | anchor | 12 | 3,456 | 2.00 | 1.00 |" in card
    assert 'license: "mit"' in card
    assert hashlib.sha256((out / "onnx" / "weights.safetensors").read_bytes()).hexdigest() in card
    assert sorted(path.name for path in given.iterdir()) == ["a.de-en.tsv", "corpus", "out", "run"]


def test_files_that_are_too_large_replace_nothing(scripts, given, monkeypatch, capsys):
    pytest.importorskip("onnx")
    ship, _ = scripts
    monkeypatch.setattr(ship, "MOST_BYTES", 1000)
    with pytest.raises(SystemExit, match=r"MB .*more than .*--pieces"):
        ship.main(line(given))
    assert not (given / "out").exists()


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda folder: (folder / "a.de-en.tsv").unlink(), "--texts"),
        (lambda folder: (folder / "run" / "metrics.jsonl").write_text(""), "no training run that has ended"),
        (lambda folder: (folder / "corpus" / "manifest.json").unlink(), "manifest.json"),
    ],
)
def test_what_is_missing_is_one_line(scripts, given, spoil, match):
    ship, _ = scripts
    spoil(given)
    with pytest.raises(SystemExit, match=match) as stop:
        ship.main(line(given))
    assert "\n" not in str(stop.value.code)


def test_frequent_pieces_are_kept(scripts, given, encoder):
    ship, _ = scripts
    files = ship.bitext_files([str(given / "*.tsv")])
    small = ship.with_frequent_pieces(encoder, 100, files)
    assert len(small.backbone.word_embeddings.weight) == small.vocabulary.size < encoder.vocabulary.size
    unknown = encoder.vocabulary.unk_id
    for ids in small.vocabulary.encode(texts(5, 20, ["deu_Latn", "eng_Latn"])):
        assert unknown not in ids
    with pytest.raises(InterlinguaError, match="max_size"):
        ship.with_frequent_pieces(encoder, 2, files)


def test_each_language_gives_as_many_sentences(scripts, given):
    ship, _ = scripts
    drawn = ship.sample(ship.bitext_files([str(given / "*.tsv")]))
    assert len(drawn) == len(set(drawn)) == 2 * ship.SAMPLE
    assert drawn == ship.sample(ship.bitext_files([str(given / "*.tsv")]))
