"""The sum of other methods: its value, its terms, its batches, its teachers, and what it
refuses."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from interlingua.config import from_mapping
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.pair_scorer import PairScorer
from interlingua.errors import ConfigError
from interlingua.methods.combination import Combination, CombinationConfig
from interlingua.training.build import feeds_of
from interlingua.training.checkpoint import weights_of
from interlingua.training.config import MethodConfig, load_train_config, train_config_from
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.harness import TINY_OPTIONS, tiny_batch, tiny_objective

TERMS = {
    "tell": {"method": "ems", "weight": 0.5, "contrastive": "none", "language_dim": 4},
    "hide": {"method": "mexma", "weight": 2.0, "align_weight": 0.0, "koleo_weight": 0.0,
    "pooling": "any",
             "head": {"layers": 1, "heads": 2, "intermediate_size": 8}},
    "follow": {"method": "calibrated"},
}  # fmt: skip


def config_of(terms):
    return from_mapping(CombinationConfig, {"terms": terms})


def build(terms=TERMS):
    torch.manual_seed(1)
    return Combination(config_of(terms), tiny_encoder()).eval()


def test_the_loss_is_the_weighted_sum_of_the_methods_losses():
    objective, pairs = build(), tiny_pairs()
    output = objective(pairs)
    parts = {label: method(pairs).loss for label, method in objective.methods.items()}
    torch.testing.assert_close(
        output.loss, 0.5 * parts["tell"] + 2.0 * parts["hide"] + parts["follow"]
    )
    assert set(output.terms) == {"tell", "hide", "follow"}
    torch.testing.assert_close(output.terms["hide"], 2.0 * parts["hide"].detach())
    torch.testing.assert_close(sum(output.terms.values()), output.loss.detach())
    assert not any(term.requires_grad for term in output.terms.values())


def test_several_terms_of_a_method_are_told_apart():
    objective = build({"xlm": {"method": "tlm", "weight": 0.1}, "rank": {"method": "infonce"}})
    output = objective(tiny_pairs())
    assert set(output.terms) == {"xlm_tlm", "xlm_mlm", "rank"}
    torch.testing.assert_close(sum(output.terms.values()), output.loss.detach())


def test_one_encoder_is_shared_and_saved_once():
    objective = build()
    assert all(method.encoder is objective.encoder for method in objective.methods.values())
    parameters = [name for name, _ in objective.named_parameters() if "encoder.backbone" in name]
    own = {name for name in parameters if name.startswith("encoder.")}
    assert len(own) == len(list(objective.encoder.parameters()))
    saved = [
        name for name in weights_of(objective) if name.endswith("backbone.embedding_norm.weight")
    ]
    assert sorted(saved) == [
        "encoder.backbone.embedding_norm.weight",
        "methods.follow.teacher.encoder.backbone.embedding_norm.weight",
    ]


def test_gradients_of_all_methods_add_up_in_the_encoder():
    def gradient(terms):
        objective = build(terms)
        objective(tiny_pairs()).loss.backward()
        return objective.encoder.backbone.word_embeddings.weight.grad

    terms = {"rank": {"method": "infonce"}, "squares": {"method": "calibrated", "weight": 3.0}}
    both = gradient(terms)
    expected = sum(gradient({label: table}) for label, table in terms.items())
    torch.testing.assert_close(both, expected, rtol=1e-4, atol=1e-6)


SHARING = {
    "contrast": {"method": "labse"},
    "tell": {"method": "ems", "language_dim": 4, "projection_dim": 8, "tag_dropout": 0.0},
    "follow": {"method": "calibrated"},
    "hide": TERMS["hide"],
}


def test_shared_passes_have_the_gradients_of_separate_ones():
    found, encoded = [], []
    for shares in (True, False):
        torch.manual_seed(1)
        encoder = tiny_encoder(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        objective = Combination(
            dataclasses.replace(config_of(SHARING), share_passes=shares), encoder
        ).eval()
        passes = count_sentences(objective.encoder)
        output = objective(tiny_pairs())
        output.loss.backward()
        encoded.append(sum(passes))
        trained = {
            name: weight.grad
            for name, weight in objective.named_parameters()
            if weight.grad is not None
        }
        found.append((trained, output.terms))
        assert objective.encoder.shared_passes is None
    (shared, terms), (separate, terms_apart) = found
    assert shared.keys() == separate.keys()
    for name, gradient in separate.items():
        assert (shared[name] - gradient).norm() <= 1e-6 * (1 + gradient.norm())
    for name, term in terms_apart.items():
        torch.testing.assert_close(terms[name], term, rtol=1e-6, atol=1e-6)
    assert encoded[0] < 0.7 * encoded[1]


def count_sentences(encoder):
    """Return a list that receives the number of sentences of each pass over the backbone."""
    counts = []
    encoder.backbone.register_forward_pre_hook(lambda _, inputs: counts.append(len(inputs[1]) - 1))
    return counts


def test_feeds_are_those_of_all_methods_and_each_gets_its_own():
    options = TINY_OPTIONS["combination"]
    assert feeds_of(MethodConfig(name="combination", options=config_of(options["terms"]))) == (
        "parallel",
        "monolingual",
    )
    objective, batch = tiny_objective("combination"), tiny_batch("combination")
    terms = objective(batch).terms
    other = {**batch, "monolingual": tiny_batch("retromae", seed=1)}
    changed = {
        name for name, term in objective(other).terms.items() if not torch.equal(term, terms[name])
    }
    assert changed == {"mono_encoder", "mono_decoder"}


def test_a_method_of_several_feeds_gets_them_all():
    terms = {"xlm": {"method": "tlm", "mlm_text": "monolingual"}, "rank": {"method": "infonce"}}
    options = {"terms": terms}
    assert set(build(terms)(tiny_batch("combination", options)).terms) == {
        "xlm_tlm",
        "xlm_mlm",
        "rank",
    }


def test_teachers_move_after_a_step():
    objective = build()
    objective.total_steps = 10
    teacher = objective.methods["follow"].teacher.encoder.backbone.layers[0].query.weight
    before = teacher.clone()
    with torch.no_grad():
        objective.encoder.backbone.layers[0].query.weight += 1000.0
    objective.after_step(0)
    assert (teacher > before).all()
    assert objective.methods["follow"].total_steps == 10


def test_methods_gather_as_the_combination_does():
    objective = build({"rank": {"method": "infonce"}})
    gathered = []
    objective.all_gather = lambda tensor: gathered.append(tensor) or tensor
    objective(tiny_pairs())
    assert len(gathered) == 2


def test_languages_of_the_corpus_reach_the_terms_that_want_them():
    terms = {
        "tell": {"method": "ems", "contrastive": "none"},
        "named": {"method": "ems", "languages": ["deu_Latn"]},
        "rank": {"method": "infonce"},
        "silent": {"method": "ems", "generative": "none"},
    }
    config = config_of(terms)
    told = {
        label: term.options
        for label, term in Combination.with_languages(config, ("a", "b")).resolved().items()
    }
    assert told["tell"].languages == ("a", "b")
    assert told["named"].languages == ("deu_Latn",)
    assert all(
        told[label] == config.resolved()[label].options for label in ("named", "rank", "silent")
    )
    assert config == config_of(terms)


def test_the_methods_notes_are_told():
    terms = {"follow": {"method": "calibrated", "teacher": "frozen"}, "rank": {"method": "infonce"}}
    assert build(terms).notes() == ["follow: the teacher is frozen"]


def test_labels_are_of_the_kind_that_its_methods_need():
    terms = {
        "rank": {"method": "infonce"},
        "score": {"method": "sts"},
        "pair": {"method": "cross_encoder"},
    }
    assert Combination.label_kind_for(config_of(terms)) == "sts"
    assert Combination.label_kind_for(config_of({"classes": {"method": "nli"}})) == "nli"
    assert Combination.label_kind_for(config_of({"rank": {"method": "infonce"}})) is None


def test_a_head_that_belongs_to_the_model_is_saved_with_it(tmp_path):
    objective = build(
        {"pair": {"method": "cross_encoder"}, "score": {"method": "sts", "weight": 2.0}}
    )
    assert objective.evaluated is objective.methods["pair"].scorer
    objective.save(tmp_path / "pair")
    weight = PairScorer.load(tmp_path / "pair").head.output.weight
    assert torch.equal(weight, objective.methods["pair"].scorer.head.output.weight)
    plain = build()
    assert plain.evaluated is plain.encoder
    plain.save(tmp_path / "plain")
    assert Encoder.load(tmp_path / "plain").digest() == plain.encoder.digest()


def test_from_a_file_and_back(tmp_path):
    (tmp_path / "run.toml").write_text(
        """
        [data]
        corpus = "corpus"
        [encoder]
        preset = "ems-tiny"
        [method]
        name = "combination"
        [method.terms.tell]
        method = "ems"
        contrastive = "none"
        [method.terms.hide]
        method = "mexma"
        weight = 0.5
        pooling = "any"
        head = { layers = 2 }
        [run]
        output = "run"
        max_steps = 5
        """
    )
    config = load_train_config(tmp_path / "run.toml", overrides=["method.terms.hide.weight=3"])
    resolved = config.method.options.resolved()
    assert {label: term.weight for label, term in resolved.items()} == {"tell": 1.0, "hide": 3.0}
    assert resolved["hide"].options.head.layers == 2
    (tmp_path / "again.toml").write_text(config.to_toml())
    assert load_train_config(tmp_path / "again.toml") == config


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({}, "terms is empty"),
        ({"x": {"weight": 1.0}}, "terms.x: .*a method; .*anchor"),
        ({"x": 3}, "terms.x: .*a method"),
        ({"x": {"method": "emms"}}, "terms.x: .*'emms'; .*'ems'"),
        ({"x": {"method": "combination"}}, "terms.x: a combination"),
        ({"x": {"method": "ems", "weight": 0.0}}, "terms.x: weight: .*found 0.0"),
        ({"x": {"method": "ems", "weight": "much"}}, "terms.x: weight: .*'much'"),
        ({"x": {"method": "ems", "weight": True}}, "terms.x: weight: .*True"),
        ({"x": {"method": "ems", "temprature": 1.0}}, "terms.x: .*'temprature'; .*'temperature'"),
        ({"x": {"method": "ems", "temperature": 0.0}}, "terms.x: temperature: .*0.0"),
        ({"x": {"method": "sts"}, "y": {"method": "nli"}}, "terms.y .*nli .*terms.x scores"),
        (
            {"x": {"method": "cross_encoder"}, "y": {"method": "multilingual_ir"}},
            "terms.x and terms.y",
        ),
        ({"x y": {"method": "ems"}}, "found 'x y'"),
    ],
)
def test_bad_terms_are_errors_in_one_line(terms, message):
    with pytest.raises(ConfigError, match=message) as caught:
        config_of(terms)
    assert "\n" not in str(caught.value)


def test_a_method_that_can_t_use_the_encoder_is_named():
    with pytest.raises(ConfigError, match=r"terms.hide: .*first token"):
        build({"hide": {"method": "mexma"}})


def test_an_unknown_key_beside_terms_is_an_error():
    run = {"output": "x", "max_steps": 1}
    table = {"data": {"corpus": "c"}, "encoder": {"preset": "ems-tiny"}, "run": run}
    with pytest.raises(ConfigError, match=r"'term'; .*'terms'"):
        train_config_from({**table, "method": {"name": "combination", "term": {}}})
