from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.exporters.graphs import export_graphs
from interlingua.exporters.runtimes import StockRuntime
from interlingua.exporters.sentence_transformers import ExportSettings, export_model, find_model
from interlingua.exporters.shrink import ShrinkOptions
from interlingua.exporters.verify import SAMPLES
from interlingua.vocabulary.sentencepiece_training import train_vocabulary
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.shapes import JINA_BERT

pytest.importorskip("sentence_transformers")


@pytest.mark.parametrize(
    ("dtype", "closeness"), [("float32", 1e-5), ("float16", 1e-4), ("bfloat16", 1e-2)]
)
def test_export_is_a_checked_directory_with_a_card(encoder, model, tmp_path, dtype, closeness):
    verification = export_model(model, tmp_path / "out", ExportSettings(dtype=dtype))
    assert verification.minimum > 1 - closeness
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# out" in card
    back = Encoder.load(tmp_path / "out")
    assert (back.digest() == encoder.digest()) == (dtype == "float32")


def test_special_tokens_in_a_text_are_letters_there_too(tmp_path, encoder):
    samples = [(language, text) for language, texts in SAMPLES.items() for text in texts]
    own = train_vocabulary(samples, size=1500, languages=["eng_Latn", "deu_Latn"], threads=1)
    for vocabulary, splits in ((own, True), (encoder.vocabulary, False)):
        config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
        folder = tmp_path / f"splits-{splits}"
        Encoder.from_scratch(config, vocabulary).save(folder)
        for text in ("a <mask> b", "the <MASK><pad> <unk>"):
            theirs = StockRuntime(folder).model.preprocess([text])["input_ids"][0].tolist()
            assert theirs == vocabulary.encode([text])[0]
            assert (vocabulary.mask_id in vocabulary.encode(["<mask> <MASK>"])[0]) != splits


def test_a_run_gives_its_best_model_else_the_last(encoder, model, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_text("")
    with pytest.raises(CheckpointError, match="no model yet"):
        find_model(run)
    shutil.copytree(model, run / "model")
    assert find_model(run) == (run / "model", run)
    shutil.copytree(model, run / "best")
    assert find_model(run) == (run / "best", run)
    assert find_model(run / "model") == (run / "model", run)
    assert find_model(model) == (model, None)
    assert find_model("owner/name") == ("owner/name", None)


def test_a_failed_check_leaves_nothing(model, tmp_path, monkeypatch):
    from interlingua.exporters import sentence_transformers as module

    original = Encoder.save

    def save_damaged(self, folder, **options):
        broken = self.clone()
        with torch.no_grad():
            broken.backbone.layers[0].value.weight.mul_(3)
        original(broken, folder, **options)

    monkeypatch.setattr(module.Encoder, "save", save_damaged)
    with pytest.raises(CheckpointError, match="hidden states differ"):
        export_model(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert export_model(model, tmp_path / "out", ExportSettings(check=False)) is None


def test_an_existing_directory_is_kept_unless_asked(model, tmp_path):
    export_model(model, tmp_path / "out", ExportSettings(check=False))
    with pytest.raises(DataError, match="--overwrite"):
        export_model(model, tmp_path / "out", ExportSettings(check=False))
    export_model(model, tmp_path / "out", ExportSettings(check=False, overwrite=True))


def test_what_stock_modules_cannot_express_is_refused(encoder, tmp_path):
    encoder.settings = dataclasses.replace(encoder.settings, include_special=False)
    encoder.save(tmp_path / "m")
    with pytest.raises(CheckpointError, match="without special tokens"):
        export_model(tmp_path / "m", tmp_path / "out")
    encoder.settings = dataclasses.replace(encoder.settings, include_special=True)
    vocabulary = encoder.vocabulary
    encoder.vocabulary = Vocabulary(
        vocabulary.tokenizer.to_str(), special_tokens=vocabulary.special_tokens, pre_tokenizer="ems"
    )
    encoder.save(tmp_path / "m")
    with pytest.raises(CheckpointError, match="segments words"):
        export_model(tmp_path / "m", tmp_path / "out")
    export_model(tmp_path / "m", tmp_path / "out", ExportSettings(check=False))


def test_alibi_needs_code_of_the_hub_and_the_card_says_so(framed, tmp_path):
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32}
    config = BackboneConfig(vocab_size=framed.size, intermediate_size=48, **sizes, **JINA_BERT)
    Encoder.from_scratch(config, framed).save(tmp_path / "m")
    with pytest.raises(CheckpointError, match="ALiBi"):
        export_model(tmp_path / "m", tmp_path / "out")
    with pytest.raises(CheckpointError, match="ALiBi"):
        export_graphs(tmp_path / "m", tmp_path / "out", ("compact",))
    assert not (tmp_path / "out").exists()
    export_model(tmp_path / "m", tmp_path / "out", ExportSettings(check=False))
    card = (tmp_path / "out" / "README.md").read_text()
    assert 'SentenceTransformer("out", trust_remote_code=True)' in card
    again = Encoder.load(tmp_path / "out")
    assert again.backbone.config.model_type == "jina_bert"


def test_an_unknown_dtype_is_named(model, tmp_path):
    with pytest.raises(ConfigError, match="unknown dtype 'int4'"):
        export_model(model, tmp_path / "out", ExportSettings(dtype="int4"))


def test_what_is_no_model_of_ours_is_kept(model, tmp_path):
    mine = tmp_path / "out" / "config.json"
    mine.parent.mkdir()
    mine.write_text("{}")
    with pytest.raises(ConfigError, match=r"out: .*other files"):
        export_model(model, tmp_path / "out", ExportSettings(check=False, overwrite=True))
    with pytest.raises(ConfigError, match=r"out: .*other files"):
        Encoder.load(model).save(tmp_path / "out")
    assert mine.read_text() == "{}"


def test_token_vectors_are_exported_in_int8_and_transformers_are_not(
    model, static_encoder, tmp_path
):
    static_encoder.save(tmp_path / "static")
    for dtype, closeness in (("float32", 1e-6), ("float16", 1e-5), ("int8", 1e-3)):
        found = export_model(tmp_path / "static", tmp_path / dtype, ExportSettings(dtype=dtype))
        assert found.minimum > 1 - closeness
    sizes = [
        (tmp_path / dtype / "model.safetensors").stat().st_size
        for dtype in ("float32", "float16", "int8")
    ]
    assert sizes[0] > 1.8 * sizes[1] > 2.5 * sizes[2]
    card = (tmp_path / "int8" / "README.md").read_text()
    assert "| backbone | none: a vector for each token" in card
    assert "from 6.2 on" in card
    assert "from 6.2 on" not in (tmp_path / "float16" / "README.md").read_text()
    with pytest.raises(ConfigError, match=r"int8 .* --int8"):
        export_model(model, tmp_path / "out", ExportSettings(dtype="int8"))


def test_int8_is_not_checked_by_a_library_that_does_not_read_it(
    static_encoder, tmp_path, monkeypatch
):
    static_encoder.save(tmp_path / "m", dtype=torch.int8)
    monkeypatch.setattr("sentence_transformers.__version__", "6.1.0")
    with pytest.raises(ConfigError, match=r"6\.1\.0 cannot .*>=6\.2"):
        StockRuntime(tmp_path / "m")
    monkeypatch.setattr("sentence_transformers.__version__", "10.0.0.dev1")
    StockRuntime(tmp_path / "m")


def test_more_texts_can_be_compared(model, tmp_path):
    told = []
    settings = ExportSettings(samples={"nob_Latn": ["Ja."]}, on_verified=told.append)
    export_model(model, tmp_path / "out", settings)
    assert told[0].texts == 1
    assert list(told[0].worst) == ["nob_Latn"]


def test_cut_vectors_are_those_of_sentence_transformers(encoder, model, tmp_path):
    found = export_model(
        model, tmp_path / "out", ExportSettings(smaller=ShrinkOptions(truncate_dim=8))
    )
    assert found.minimum > 1 - 1e-5
    stock = StockRuntime(tmp_path / "out").model
    assert stock.truncate_dim == 8
    texts = list(SAMPLES["eng_Latn"])
    vectors = stock.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(vectors, encoder.encode(texts, truncate_dim=8), atol=1e-5)
    assert "normalize_embeddings=True" in (tmp_path / "out" / "README.md").read_text()
    back = Encoder.load(tmp_path / "out")
    assert np.array_equal(back.encode(texts), encoder.encode(texts, truncate_dim=8))


def test_the_card_names_the_widths_it_was_trained_for(encoder, tmp_path):
    encoder.settings = dataclasses.replace(encoder.settings, matryoshka_dims=(32, 16, 8))
    encoder.save(tmp_path / "nested")
    settings = ExportSettings(smaller=ShrinkOptions(truncate_dim=16), check=False)
    export_model(tmp_path / "nested", tmp_path / "out", settings)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| dimensions | 16 |" in card
    assert "| can be cut to | 8 |" in card


def test_forms_of_texts_are_undone_there_as_far_as_its_tokenizer_can(model, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    out = tmp_path / "forms"
    export_model(model, out, ExportSettings(text_forms=("invisible", "decomposed", "capitals")))
    ours = Encoder.load(out)
    assert ours.vocabulary.text_forms == ("invisible", "decomposed", "capitals")
    texts = ["die kat\u00adze", "U\u0308ber"]
    theirs = library.SentenceTransformer(str(out), device="cpu").encode(
        texts, normalize_embeddings=True
    )
    assert np.allclose(ours.encode(texts), theirs, atol=1e-5)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "## Forms of texts" in card
    assert "Only interlingua undoes capitals" in card
    # None at all, again.
    export_model(out, tmp_path / "plain", ExportSettings(text_forms=()))
    assert Vocabulary.load(tmp_path / "plain").text_forms == ()
    with pytest.raises(ConfigError, match=r"text_forms.*capitals"):
        export_model(model, tmp_path / "wrong", ExportSettings(text_forms=("capital",)))
