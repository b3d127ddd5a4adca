"""experiments/mini/ship.py: processing of a trained model before it is packaged."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from interlingua.corpus.manifest import LanguagePairRecord, Manifest, SourceRecord
from interlingua.encoder.directories.model_directory import read_json
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.exporters.verify import SAMPLES
from tests.exporters.conftest import framed  # noqa: F401


@pytest.fixture(scope="module")
def ship(mini_script):
    """The script as a module."""
    return mini_script("ship")


@pytest.fixture
def encoder(framed):  # noqa: F811
    """A tiny model that sentence-transformers reads, too."""
    torch.manual_seed(0)
    config = BackboneConfig(
        vocab_size=framed.size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        type_vocab_size=2,
        pad_token_id=framed.pad_id,
    )
    encoder = Encoder(Backbone(config), framed).eval()
    settings = {"prompts": {"query": "The "}, "include_special": True}
    encoder.settings = dataclasses.replace(encoder.settings, **settings)
    return encoder


def texts(first, count=60, languages=("deu_Latn", "eng_Latn", "fra_Latn")):
    """Draw sentences of nine words from the training text of the vocabulary."""
    words = " ".join(text for language in languages for text in SAMPLES[language][:2]).split()
    draw = np.random.default_rng(first)
    return [
        " ".join(words[place] for place in draw.integers(0, len(words), 9)) for _ in range(count)
    ]


@pytest.fixture
def given(tmp_path, encoder):
    """A trained model, the corpus and its run."""
    encoder.save(tmp_path / "run" / "best")
    (tmp_path / "run" / "config.toml").write_text(
        '[data]\n[method]\nname = "anchor"\n[run]\nseed = 0\n'
    )
    final = {"kind": "final", "step": 12, "seconds": 7200.0, "cpu_seconds": 3600.0, "pairs": 3456}
    (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps(final) + "\n")
    (tmp_path / "corpus").mkdir()
    tales = SourceRecord(
        name="tales",
        license="CC0",
        files=(),
        read=10,
        skipped={},
        dropped={},
        train=10,
        valid=0,
        heldout=0,
    )
    german = LanguagePairRecord(
        source="deu_Latn", target="eng_Latn", train=10, valid=0, heldout=0, dropped={}
    )
    manifest = Manifest(
        created="",
        versions={},
        config={},
        sources=(tales,),
        language_pairs=(german,),
        dropped={},
        decontaminated={},
        vocabulary={},
        tokens={},
        seconds={},
    )
    manifest.save(tmp_path / "corpus")
    sides = zip(texts(3, 40, ["deu_Latn"]), texts(4, 40, ["eng_Latn"]), strict=True)
    (tmp_path / "corpus" / "valid_text").mkdir()
    held_out = "".join(f"{source}\t{target}\n" for source, target in sides)
    (tmp_path / "corpus" / "valid_text" / "deu-eng.tsv").write_text(held_out)
    return tmp_path


def line(folder, *more):
    trained = folder / "run" / "best"
    given = ["--corpus", folder / "corpus", "--run", folder / "run", *more]
    return [str(word) for word in (trained, "-o", folder / "out", *given)]


def test_what_is_shipped_has_no_prompt_and_a_card(ship, given, tmp_path, capsys):
    pytest.importorskip("sentence_transformers")
    ship.main(line(given))
    assert re.fullmatch(r".*/out: 0\.\d MB", capsys.readouterr().out.splitlines()[-1])
    out, stock = given / "out", tmp_path / "stock"
    assert read_json(out / "config_sentence_transformers.json")["prompts"] == {}
    assert not (out / "model.safetensors").exists()
    card = (out / "README.md").read_text()
    assert "| tales | CC0 | 10 |" in card
    assert "German (deu_Latn)" in card
    assert "| run | anchor | 12 | 3,456 | 2.00 | 1.00 |" in card
    assert 'license: "mit"' in card
    assert hashlib.sha256((out / "packed.safetensors").read_bytes()).hexdigest() in card
    assert (out / "packed.sha256").read_text() == ship.digest(out) + "\n"
    stock.mkdir()
    ship.write_stock(stock, out)
    shipped, trained = Encoder.load(stock), Encoder.load(given / "run" / "best")
    # The held-out texts decide the rounding, so some integers are not the nearest ones.
    stored = load_file(out / ship.PACKED_WEIGHTS)
    weights = load_file(given / "run" / "best" / "model.safetensors")
    nearest = ship.pack(weights, four_bits=ship.TABLE)
    moved = {name for name in nearest if not np.array_equal(stored[name], nearest[name])}
    assert "encoder.layer.0.output.dense.weight.eight_bits" in moved
    assert "embeddings.position_embeddings.weight.eight_bits" not in moved
    assert (shipped.encode(texts(5)) * trained.encode(texts(5), prompt="")).sum(axis=1).min() > 0.99


def test_a_later_stage_adds_to_the_cost(ship, given, tmp_path, capsys):
    pytest.importorskip("sentence_transformers")
    with pytest.raises(SystemExit, match=r"no section '## Cost'"):
        (given / "README.md").write_text("# A card\n")
        ship.main(line(given, "--before", given))
    ship.main(line(given))
    (given / "out").rename(given / "first")
    (given / "run").rename(given / "later")
    words = line(given, "--before", given / "first")
    ship.main([word.replace(f"{given}/run", f"{given}/later") for word in words])
    costs = (given / "out" / "README.md").read_text().partition("## Cost")[2]
    later = "| later | anchor | 12 | 3,456 | 2.00 | 1.00 |"
    assert costs.split("\n")[4:7] == [later.replace("later", "run"), later, ""]


def test_files_that_are_too_large_replace_nothing(ship, given, monkeypatch):
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(ship, "MOST_BYTES", 1000)
    with pytest.raises(SystemExit, match=r"MB .*more than .*max_size"):
        ship.main(line(given))
    assert not (given / "out").exists()


def test_vectors_that_move_replace_nothing(ship, given, monkeypatch):
    monkeypatch.setattr(ship, "LEAST_MEAN", 1.1)
    with pytest.raises(SystemExit, match="eight bits"):
        ship.main(line(given))
    assert not (given / "out").exists()


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (
            lambda folder: (folder / "run" / "metrics.jsonl").write_text(""),
            "that has ended",
        ),
        (lambda folder: (folder / "corpus" / "manifest.json").unlink(), "manifest.json"),
    ],
)
def test_what_is_missing_is_one_line(ship, given, spoil, match):
    spoil(given)
    with pytest.raises(SystemExit, match=match) as stop:
        ship.main(line(given))
    assert "\n" not in str(stop.value.code)


def test_sets_of_questions_are_a_table_with_what_was_left_out(ship):
    one = {"name": "tales", "license": "CC0", "questions": 1200, "machine_translated": True}
    other = {"name": "news", "license": "MIT", "questions": 3, "machine_translated": False}
    table = ship.questions_section([{**one, "withheld": ""}, {**other, "withheld": "abstracts"}])
    assert "| tales | CC0; machine-translated | 1,200 |" in table
    assert table.endswith("| news | MIT | 3 |\n\nLeft out: abstracts.")
