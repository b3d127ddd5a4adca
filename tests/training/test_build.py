import dataclasses
import json

import numpy as np
import pytest
import torch

from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.training.build import (
    MicroBatches,
    build_encoder,
    build_objective,
    remember_lengths,
)
from interlingua.training.config import train_config_from
from interlingua.training.feeds.open_feeds import open_data
from interlingua.training.loop import run_training
from interlingua.training.machine.engine import Engine
from interlingua.vocabulary.vocabulary import Vocabulary


def test_the_seed_decides_the_weights(tiny_config, word_vocabulary):
    first, again, other = (
        build_objective(tiny_config(seed=seed), word_vocabulary) for seed in (1, 1, 2)
    )
    weights = [
        torch.cat([p.flatten() for p in objective.parameters()])
        for objective in (first, again, other)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_preset_with_a_size_of_its_own(tiny_table, word_vocabulary):
    tiny_table["encoder"] = {
        "preset": "ems-tiny",
        "num_hidden_layers": 1,
        "pooling": "cls",
        "initialization": "bert",
    }
    encoder = build_encoder(train_config_from(tiny_table), word_vocabulary)
    assert (len(encoder.backbone.layers), encoder.pooling, encoder.dim) == (1, "cls", 32)
    assert encoder.backbone.config.vocab_size == word_vocabulary.size
    assert encoder.backbone.word_embeddings.weight.std().item() == pytest.approx(0.02, rel=0.1)


def test_gradient_checkpointing_is_for_the_layers_of_encoder_and_heads(
    tiny_config, tiny_table, word_vocabulary
):
    from interlingua.encoder.modeling.layer import Layer

    tiny_table["method"] = {"name": "mexma", "pooling": "any", "head": {"layers": 3, "heads": 2}}
    for asked in (False, True):
        objective = build_objective(tiny_config(gradient_checkpointing=asked), word_vocabulary)
        layers = [module for module in objective.modules() if isinstance(module, Layer)]
        assert [layer.recomputes for layer in layers] == [asked] * 5


def test_pretrained_backbone_with_the_corpus_vocabulary(
    tiny_config, tiny_table, word_vocabulary, tmp_path
):
    encoder = build_encoder(tiny_config(), word_vocabulary)
    encoder.save(tmp_path / "model")
    tiny_table["encoder"] = {"path": str(tmp_path / "model"), "pooling": "max"}
    loaded = build_encoder(train_config_from(tiny_table), word_vocabulary)
    assert loaded.pooling == "max"
    assert torch.equal(
        loaded.backbone.word_embeddings.weight, encoder.backbone.word_embeddings.weight
    )


def test_pretrained_backbone_with_another_vocabulary(
    tiny_config, tiny_table, word_vocabulary, tmp_path
):
    build_encoder(tiny_config(), word_vocabulary).save(tmp_path / "model")
    other = Vocabulary(
        word_vocabulary.tokenizer.to_str(), special_tokens=word_vocabulary.special_tokens
    )
    tiny_table["encoder"] = {"path": str(tmp_path / "model")}
    with pytest.raises(ConfigError, match=r"different vocabularies; .*prepare"):
        build_encoder(train_config_from(tiny_table), other)
    corpus = tmp_path / "corpus"
    (corpus / "backbone").mkdir(parents=True)
    tiny_table["data"]["corpus"] = str(corpus)
    with pytest.raises(ConfigError, match=r"trim = true.*: set encoder\.path"):
        build_encoder(train_config_from(tiny_table), other)


def test_micro_batches_are_the_global_batch_in_order(tiny_config, monkeypatch):
    config = tiny_config(global_batch_size=24, micro_batch_size=4)
    train = open_data(config, ("parallel",)).train
    whole = MicroBatches(tiny_config(global_batch_size=24), train, 120, Engine(config.run))(5)
    found = []
    for rank in (0, 1):
        engine = Engine(config.run)
        monkeypatch.setattr(Engine, "world_size", 2)
        monkeypatch.setattr(Engine, "rank", rank)
        batches = MicroBatches(config, train, 120, engine)
        assert batches.accumulation == 3
        found += batches(5)
        monkeypatch.undo()
    assert [batch.first_row for batch in found] == [0, 4, 8, 12, 16, 20]
    assert len(whole) == 1
    for side in ("a", "b"):
        ids = torch.cat([getattr(batch, side).input_ids for batch in found])
        assert torch.equal(ids, getattr(whole[0], side).input_ids)


def test_a_feed_that_micro_batches_can_t_share(table_of_feeds):
    config = train_config_from(table_of_feeds)
    sources = open_data(config, ("questions", "parallel")).train
    with pytest.raises(ConfigError, match=r"5 rows .* 2 micro-batches"):
        MicroBatches(config, sources, 120, Engine(config.run))


@pytest.mark.parametrize(("towers", "passages"), [("separate", 9), ("shared", 12)])
def test_the_lengths_of_training_stay_with_the_model(
    table_of_feeds, word_vocabulary, tmp_path, towers, passages
):
    """Check that the saved model reads as much of a passage as training, for any backbone."""
    table_of_feeds["method"]["towers"] = towers
    table_of_feeds["data"]["questions"] |= {"max_passage_tokens": 9, "max_question_tokens": 12}
    config = train_config_from(table_of_feeds)
    objective = build_objective(config, word_vocabulary)
    remember_lengths(objective, config)
    objective.save(tmp_path / "model")
    model = DualEncoder.load(tmp_path / "model")
    assert (model.passages.max_tokens, model.questions.max_tokens) == (passages, 12)
    long = " ".join(f"en{n}" for n in range(30))
    frame = len(word_vocabulary.encode(["en1"])[0]) - 1
    cut = " ".join(f"en{n}" for n in range(passages - frame))
    np.testing.assert_allclose(
        model.encode_passages([long]), model.encode_passages([cut]), atol=1e-6
    )


def test_a_run_leaves_a_model_with_its_lengths(table_of_feeds, tmp_path):
    questions = [{"question": f"en{n}", "positive_ctxs": [{"text": f"de{n}"}]} for n in range(4)]
    (tmp_path / "train.json").write_text(json.dumps(questions), encoding="utf-8")
    table_of_feeds["data"]["questions"]["max_passage_tokens"] = 9
    table_of_feeds["run"] |= {
        "global_batch_size": 4,
        "micro_batch_size": 4,
        "max_steps": 1,
        "eval_steps": 1,
    }
    table_of_feeds["run"]["metric_for_best_model"] = "own"  # there are no questions to validate on
    result = run_training(
        train_config_from(table_of_feeds),
        evaluate=lambda encoder, step: {"own": 1.0},
        progress=False,
    )
    assert Encoder.load(result.model).max_tokens == 9


def test_without_questions_the_length_is_the_backbone_s(tiny_config, word_vocabulary):
    objective = build_objective(tiny_config(), word_vocabulary)
    before = objective.encoder.max_tokens
    remember_lengths(objective, tiny_config())
    assert objective.encoder.max_tokens == before


@pytest.fixture
def table_of_feeds(tiny_table, tmp_path):
    path = tmp_path / "train.json"
    path.write_text('[{"question": "en1", "positive_ctxs": [{"text": "en2"}]}]', encoding="utf-8")
    tiny_table["method"] = {"name": "multilingual_ir"}
    tiny_table["data"] |= {"batch_size": 5, "questions": {"paths": [str(path)]}}
    tiny_table["run"] |= {"global_batch_size": 16, "micro_batch_size": 8}
    return tiny_table


def test_sentences_are_cut_to_what_the_encoder_takes(tiny_table):
    tiny_table["data"]["max_tokens"] = 7
    config = train_config_from(tiny_table)
    train, engine = open_data(config, ("parallel",)).train, Engine(config.run)
    assert MicroBatches(config, train, 5, engine)(0)[0].a.max_seqlen == 5
    assert MicroBatches(config, train, 120, engine)(0)[0].a.max_seqlen == 7


def test_parts_of_a_pass_hold_for_every_encoder_of_the_objective(
    tiny_config, tiny_table, word_vocabulary
):
    assert build_objective(tiny_config(), word_vocabulary).encoder.gradcache_sentences is None
    tiny_table["method"] = {"name": "distill"}
    tiny_table["run"]["gradcache_sentences"] = 5
    objective = build_objective(train_config_from(tiny_table), word_vocabulary)
    assert objective.encoder.gradcache_sentences == objective.teacher.gradcache_sentences == 5


def test_a_method_that_calls_the_backbone_itself_can_t_be_computed_in_parts(
    tiny_table, word_vocabulary
):
    tiny_table["method"] = {"name": "tlm"}
    build_objective(train_config_from(tiny_table), word_vocabulary)
    tiny_table["run"]["gradcache_sentences"] = 5
    with pytest.raises(ConfigError, match=r"gradcache_sentences .*tlm"):
        build_objective(train_config_from(tiny_table), word_vocabulary)


def test_languages_are_the_corpus_s_where_neither_method_nor_vocabulary_names_them(
    tiny_table, tiny_config, word_vocabulary
):
    plain = Vocabulary(
        word_vocabulary.tokenizer.to_str(), special_tokens=word_vocabulary.special_tokens
    )
    corpus = open_data(tiny_config(), ["parallel"]).languages
    assert corpus == ("deu_Latn", "eng_Latn", "rus_Cyrl")

    def languages(vocabulary, **method):
        tiny_table["method"] = {"name": "ems", **method}
        return build_objective(train_config_from(tiny_table), vocabulary, corpus).config.languages

    assert languages(plain) == corpus
    assert languages(plain, languages=["de", "en", "ru", "fr"]) == ("de", "en", "ru", "fr")
    assert languages(word_vocabulary) == languages(plain, generative="none") == ()
    assert languages(plain, name="laser", targets=["eng_Latn"]) == ()
    assert languages(plain, name="laser") == corpus
    terms = {"tell": {"method": "ems", "contrastive": "none"}, "rank": {"method": "labse"}}
    tiny_table["method"] = {"name": "combination", "terms": terms}
    told = build_objective(train_config_from(tiny_table), plain, corpus).methods["tell"]
    assert tuple(told.predict.tags.index) == corpus
    assert not hasattr(
        build_objective(config_of(tiny_table, "labse"), plain, corpus).config, "languages"
    )
    with pytest.raises(ConfigError, match=r"set method\.languages, or language_tag = false"):
        build_objective(config_of(tiny_table, "ems"), plain)


def config_of(table, method):
    return train_config_from({**table, "method": {"name": method}})


def test_prefixes_are_those_of_the_config(tiny_table, word_vocabulary):
    tiny_table["method"] = {"name": "labse", "matryoshka": [32, 8]}
    objective = build_objective(train_config_from(tiny_table), word_vocabulary)
    assert objective.matryoshka.dims == objective.encoder.settings.matryoshka_dims == (32, 8)
    tiny_table["method"]["matryoshka"] = [16, 8]
    with pytest.raises(ConfigError, match="matryoshka starts with 16"):
        build_objective(train_config_from(tiny_table), word_vocabulary)


def test_what_was_learned_of_cut_vectors_ends_with_the_weights(
    tiny_config, tiny_table, word_vocabulary, tmp_path
):
    encoder = build_encoder(tiny_config(), word_vocabulary)
    encoder.settings = dataclasses.replace(
        encoder.settings, matryoshka_dims=(32, 8), truncate_dim=8
    )
    encoder.calibrate_ranges(["de1", "de2 de3"])
    encoder.save(tmp_path / "model")
    tiny_table["encoder"] = {"path": str(tmp_path / "model")}
    settings = build_encoder(train_config_from(tiny_table), word_vocabulary).settings
    assert (settings.matryoshka_dims, settings.truncate_dim, settings.int8_ranges) == ((), None, {})


@pytest.mark.parametrize(
    "method",
    [
        {"name": "mexma", "pooling": "any"},
        {"name": "dap"},
        {"name": "ems", "generative": "ugt"},
        {"name": "tlm"},
        {"name": "retromae"},
    ],
)
def test_a_vocabulary_without_a_mask_is_refused_at_once(tiny_table, word_vocabulary, method):
    kept = {
        role: token
        for role, token in word_vocabulary.special_tokens.items()
        if role != "mask_token"
    }
    without = Vocabulary(word_vocabulary.tokenizer.to_str(), special_tokens=kept)
    config = train_config_from({**tiny_table, "method": method})
    with pytest.raises(ConfigError, match="no mask_token"):
        build_objective(config, without, languages=("deu_Latn", "eng_Latn"))


@pytest.mark.parametrize(
    ("method", "micro", "expected"),
    [
        ({"name": "labse"}, 4, "compares only 4 of a step's 16 rows"),
        ({"name": "labse"}, None, None),
        (
            {"name": "mexma", "alignment": "contrastive", "koleo_weight": 0.0, "pooling": "any"},
            8,
            "run.devices = 2",
        ),
        ({"name": "mexma", "pooling": "any"}, 8, None),
        (
            {"name": "ems", "projection_dim": 16, "language_dim": 8},
            8,
            None,
        ),  # its negatives are a micro-batch's
    ],
)
def test_fewer_negatives_than_the_step_has_are_warned_of(
    tiny_table, method, micro, expected, capsys
):
    tiny_table["method"] = method
    tiny_table["run"] |= {
        "micro_batch_size": micro,
        "max_steps": 2,
        "save_steps": 2,
        "eval_steps": 2,
    }
    tiny_table["run"] = {
        key: value for key, value in tiny_table["run"].items() if value is not None
    }
    run_training(train_config_from(tiny_table), progress=False)
    warned = [line for line in capsys.readouterr().err.splitlines() if "negatives" in line]
    assert len(warned) == (expected is not None)
    assert expected is None or expected in warned[0]


@pytest.mark.parametrize(("rows", "warned"), [(5, True), (None, False)])
def test_a_step_of_more_rows_than_there_are_is_warned_of(tiny_table, rows, warned, capsys):
    tiny_table["run"] |= {"max_steps": 2, "save_steps": 2, "eval_steps": 2}
    if rows is not None:
        tiny_table["data"] |= {"max_pairs": rows, "language_pairs": ["deu_Latn-eng_Latn"]}
    run_training(train_config_from(tiny_table), progress=False)
    lines = [line for line in capsys.readouterr().err.splitlines() if "rows repeat" in line]
    assert len(lines) == warned
    assert all("16 rows" in line and "run.global_batch_size" in line for line in lines)


def test_forms_are_those_of_the_config_and_a_run_takes_them(tiny_table, word_vocabulary, tmp_path):
    tiny_table["method"] = {"name": "infonce"}
    tiny_table["data"]["forms"] = {"share": 0.5, "names": ["typos", "no_punctuation"]}
    config = train_config_from(tiny_table)
    assert build_objective(config, word_vocabulary).written_forms is not None
    tiny_table["run"] |= {"output": str(tmp_path / "run"), "max_steps": 2}
    assert run_training(train_config_from(tiny_table)).step == 2
    tiny_table["method"] = {"name": "tlm"}
    with pytest.raises(ConfigError, match=r"data\.forms"):
        build_objective(train_config_from(tiny_table), word_vocabulary)


@pytest.mark.parametrize("section", [{"share": 0.0}, {"share": 1.5}, {"names": ["capital"]}])
def test_wrong_forms_are_refused(tiny_table, section):
    tiny_table["data"]["forms"] = section
    with pytest.raises(ConfigError, match=r"forms.*(share|capitals)"):
        train_config_from(tiny_table)
