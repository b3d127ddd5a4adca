from __future__ import annotations

import json

import numpy as np
import onnxruntime
import openvino
import pytest
from sentence_transformers import SentenceTransformer

from interlingua.analysis.debiasing import debias_defaults
from interlingua.analysis.debiasing.debias import DebiasOptions, debias_vectors
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.language_map_files import read_map
from interlingua.errors import ConfigError, DataError
from interlingua.exporters.graphs import export_graphs
from interlingua.exporters.shrink import ShrinkOptions, shrink
from interlingua.verbs.debias import DebiasSettings, debias
from tests.encoder.conftest import SENTENCES, encoder, plain_vocabulary  # noqa: F401


@pytest.fixture
def model(encoder, tmp_path):  # noqa: F811
    encoder.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def texts(tmp_path):
    """A folder with texts of two languages that differ in their words."""
    folder = tmp_path / "texts"
    folder.mkdir()
    rng = np.random.default_rng(0)
    words = {
        "de": ["Die", "Katze", "sitzt", "auf", "der", "Matte"],
        "en": ["The", "cat", "sits", "on", "the", "mat", "one", "two"],
    }
    for code, known in words.items():
        lines = [" ".join(rng.choice(known, 6)) for _ in range(40)]
        (folder / f"{code}.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def debiased(model, texts, tmp_path):
    debias(str(model), [texts], tmp_path / "debiased", sentences=40)
    return tmp_path / "debiased"


def test_written_model_applies_the_map_it_stores(model, debiased):
    before, after = Encoder.load(model).encode(SENTENCES), Encoder.load(debiased).encode(SENTENCES)
    np.testing.assert_allclose(after, read_map(debiased).apply(before), atol=1e-5)
    assert np.abs(after - before).max() > 0.1


def test_other_libraries_give_the_same_vectors(debiased, tmp_path):
    expected = Encoder.load(debiased).encode(SENTENCES)
    stock = SentenceTransformer(str(debiased), device="cpu")
    np.testing.assert_allclose(stock.encode(SENTENCES), expected, atol=1e-5)
    found = export_graphs(debiased, tmp_path / "graphs", ["onnx", "openvino"])
    assert found.minimum > 1 - 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "graphs" / "onnx" / "model.onnx")
    graph = tmp_path / "graphs" / "openvino" / "openvino_model.xml"
    # by default it computes in bfloat16 where the processor has it
    compiled = openvino.compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for ids, vector in zip(
        Encoder.load(debiased).vocabulary.encode(SENTENCES), expected, strict=True
    ):
        feed = {
            "input_ids": np.array([ids]),
            "attention_mask": np.ones((1, len(ids)), dtype=np.int64),
        }
        np.testing.assert_allclose(session.run(None, feed)[0][0], vector, atol=1e-5)
        np.testing.assert_allclose(compiled(feed)[0][0], vector, atol=1e-5)


def test_record_says_what_was_measured(debiased):
    record = json.loads((debiased / "debias.json").read_text())
    assert record["languages"] == ["deu_Latn", "eng_Latn"]
    assert record["sentences"]["estimated_on"] + record["sentences"]["held_out"] == 80
    assert record["after"]["language_recognized"] <= record["before"]["language_recognized"]


def test_same_seed_gives_the_same_model(model, texts, debiased, tmp_path):
    debias(str(model), [texts], tmp_path / "again", sentences=40)
    assert Encoder.load(tmp_path / "again").digest() == Encoder.load(debiased).digest()


def test_a_map_of_two_prompts_is_estimated_on_both(model, texts, tmp_path):
    biases = []
    for prompts in (["The "], ["Die "], ["The ", "Die "]):
        output = tmp_path / str(len(biases))
        report = debias(model, texts, output, sentences=40, method="center", prompt=prompts)
        biases.append(report.fitted.language_map.bias)
    assert np.abs(biases[0] - biases[1]).max() > 1e-3
    np.testing.assert_allclose(biases[2], (biases[0] + biases[1]) / 2, atol=1e-6)


def test_shift_needs_the_language_when_encoding(model, texts, tmp_path):
    debias(str(model), [texts], tmp_path / "shifted", sentences=40, method="shift")
    loaded = Encoder.load(tmp_path / "shifted")
    expected = read_map(tmp_path / "shifted").apply(
        Encoder.load(model).encode(SENTENCES), ["eng_Latn"] * 8
    )
    np.testing.assert_allclose(loaded.encode(SENTENCES, language="en"), expected, atol=1e-5)
    with pytest.raises(ConfigError, match="language"):
        loaded.encode(SENTENCES)
    with pytest.raises(ConfigError, match="already"):
        debias(str(tmp_path / "shifted"), [texts], tmp_path / "twice", sentences=40)


@pytest.mark.parametrize("method", ["project", "shift"])
def test_a_model_of_cut_vectors_is_mapped_as_cut(encoder, texts, tmp_path, method):  # noqa: F811
    small = shrink(encoder, ShrinkOptions(truncate_dim=8, ranges_of=[texts / "de.txt"]))
    small.save(tmp_path / "small")
    debias(tmp_path / "small", texts, tmp_path / "mapped", sentences=40, method=method)
    mapped = Encoder.load(tmp_path / "mapped")
    expected = read_map(tmp_path / "mapped").apply(small.encode(SENTENCES), ["eng_Latn"] * 8)
    np.testing.assert_allclose(mapped.encode(SENTENCES, language="en"), expected, atol=1e-5)
    assert small.settings.int8_ranges
    assert not mapped.settings.int8_ranges


def test_existing_output_is_kept_unless_overwritten(model, texts, debiased):
    with pytest.raises(DataError, match="already exists"):
        debias(str(model), [texts], debiased, sentences=40)
    debias(str(model), [texts], debiased, sentences=40, method="center", overwrite=True)
    assert read_map(debiased).method == "center"


def test_foreign_encoder_is_mapped_by_its_own_backend(texts, tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text(
        "import numpy as np\n"
        "def embed(texts):\n"
        "    return np.array([[len(t), t.count('e'), t.count('t'), 1.0] for t in texts])\n"
    )
    monkeypatch.chdir(tmp_path)
    debias("lengths:embed", [texts], tmp_path / "mapped", sentences=40, backend="function")
    mapped, info = load_encoder(str(tmp_path / "mapped"), backend="mapped", options={"trust": True})
    plain, _ = load_encoder("lengths:embed", backend="function")
    expected = read_map(tmp_path / "mapped").apply(
        plain.encode(SENTENCES, normalize_embeddings=True)
    )
    np.testing.assert_allclose(mapped.encode(SENTENCES), expected, atol=1e-6)
    assert info.name == "mapped"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "magic"}, "method"),
        ({"sentences": 1}, "sentences"),
        ({"held_out_share": 1.0}, "held_out_share"),
        ({"rank": -1}, "rank"),
    ],
)
def test_options_out_of_range_are_refused(options, match):
    with pytest.raises(ConfigError, match=match):
        DebiasOptions(**options)


def test_vectors_need_as_many_languages():
    with pytest.raises(DataError, match="per vector"):
        debias_vectors(np.ones((3, 2), dtype=np.float32), ["a", "b"])


def test_the_options_of_the_verb_have_these_defaults():
    assert DebiasSettings("mini", ["texts"]).of_estimate == DebiasOptions()
    assert DebiasOptions().sentences == debias_defaults.SENTENCES


def test_nothing_is_left_beside_the_model(debiased):
    assert not (debiased.parent / "results").exists()


def test_overwriting_keeps_a_user_s_files(model, texts, debiased):
    (debiased / "notes.txt").write_text("mine")
    (debiased / "plots").mkdir()
    (debiased / "plots" / "a.svg").write_text("mine too")
    debias(str(model), [texts], debiased, sentences=40, method="center", overwrite=True)
    assert (debiased / "notes.txt").read_text() == "mine"
    assert (debiased / "plots" / "a.svg").read_text() == "mine too"
    Encoder.load(debiased)
