"""Losses of prefixes: against Eq. (1) by hand, and against each method's own loss of embeddings cut
beforehand."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from interlingua.config.registry import METHODS, resolve_name
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.pooling import HiddenStates
from interlingua.errors import ConfigError
from interlingua.methods.matryoshka import Matryoshka, full_width
from interlingua.methods.teacher_similarity import TeacherSimilarity
from tests.methods.conftest import tiny_pairs
from tests.methods.harness import PREFIXES, tiny_batch, tiny_objective
from tests.methods.test_labse import reference as labse_reference

WIDTH = 16
NESTING = sorted(name for name in METHODS if resolve_name(METHODS, name).nested_terms)
MEANS_OVER_ELEMENTS = {
    "calibrated": ("distillation",),
    "distill": ("original", "translation"),
    "mexma": ("align",),
}
"""Terms that are means over the elements of embeddings, by method."""


def test_the_sum_over_prefixes_by_hand():
    """Square 1, 2, 3: 1 of the first, 5 of the first two, 14 of all; weighted 1, 2 and 0.5."""
    losses = Matryoshka(dims=(3, 2, 1), weights=(1.0, 2.0, 0.5)).losses(
        lambda z: z.square().sum(), torch.tensor([[1.0, 2.0, 3.0]])
    )
    assert {dim: float(loss) for dim, loss in losses.items()} == {3: 14.0, 2: 10.0, 1: 0.5}


def test_weights_are_1_each_unless_given():
    losses = Matryoshka(dims=(2, 1)).losses(torch.sum, torch.ones(1, 2))
    assert [float(loss) for loss in losses.values()] == [2.0, 1.0]


def test_later_elements_have_no_gradient_from_a_prefix():
    z = torch.ones(2, 3, requires_grad=True)
    Matryoshka(dims=(3, 1)).losses(lambda z: z.square().sum(), z)[1].backward()
    assert z.grad.tolist() == [[2.0, 0.0, 0.0]] * 2


def test_a_head_reads_a_prefix_by_its_first_columns():
    head, prefix = torch.nn.Linear(5, 3), torch.randn(2, 4)
    expected = prefix @ head.weight[:, :4].T + head.bias
    torch.testing.assert_close(head(full_width(prefix, 5)), expected)


@torch.no_grad()
def test_labse_s_terms_are_its_equations_on_prefixes():
    objective, pairs = tiny_objective("labse", PREFIXES).eval(), tiny_pairs()
    terms = objective(pairs).terms
    assert list(terms) == ["ranking_16", "ranking_8", "ranking_4"]
    for dim in PREFIXES["matryoshka"]:
        plain = tiny_objective("labse").eval()
        plain.encoder.settings = objective.encoder.settings.__class__(
            max_tokens=16, truncate_dim=dim
        )
        assert float(terms[f"ranking_{dim}"]) == pytest.approx(
            labse_reference(plain, pairs), rel=1e-4
        )


@pytest.mark.parametrize("method", NESTING)
def test_one_prefix_of_full_width_is_the_plain_loss(method):
    batch = tiny_batch(method)
    plain = tiny_objective(method)(batch).loss
    torch.testing.assert_close(tiny_objective(method, {"matryoshka": (WIDTH,)})(batch).loss, plain)


@pytest.mark.parametrize("method", NESTING)
def test_each_term_is_the_method_s_own_on_cut_vectors(method, monkeypatch):
    """Set elements to 0, which decide nothing but count in a mean over elements."""
    batch = tiny_batch(method)
    found = tiny_objective(method, PREFIXES)(batch).terms
    whole = tiny_objective(method)(batch).terms
    if method == "teacher_similarity":  # its teacher's vectors stay whole
        target = tiny_objective(method).teach(batch.questions, batch.passages)
        monkeypatch.setattr(TeacherSimilarity, "teach", lambda *_: target)
    real_pool, real_vectors = HiddenStates.pool, Encoder._vectors
    for dim in PREFIXES["matryoshka"]:

        def cut(vectors, dim=dim):
            return F.pad(vectors[:, :dim], (0, WIDTH - dim))

        monkeypatch.setattr(
            HiddenStates,
            "pool",
            lambda self, *args, **options: cut(real_pool(self, *args, **options)),
        )
        # _vectors pools by the method above, but the padding twice changes nothing
        monkeypatch.setattr(Encoder, "_vectors", lambda self, *args: cut(real_vectors(self, *args)))
        expected = tiny_objective(method)(batch).terms
        for name in [name.removesuffix(f"_{dim}") for name in found if name.endswith(f"_{dim}")]:
            factor = WIDTH / dim if name in MEANS_OVER_ELEMENTS.get(method, ()) else 1
            key = (
                name if name in expected else name.rpartition("_")[0]
            )  # a sum names a method's only term by its label
            torch.testing.assert_close(
                found[f"{name}_{dim}"], factor * expected[key], rtol=1e-4, atol=1e-6
            )
    monkeypatch.undo()
    once = [name for name in found if not name.rpartition("_")[2].isdigit()]
    for name in once:
        torch.testing.assert_close(found[name], whole[name])


@pytest.mark.parametrize("method", NESTING)
def test_the_encoder_runs_as_often_as_without_prefixes(method, monkeypatch):
    real, calls = Backbone.forward, []
    monkeypatch.setattr(
        Backbone,
        "forward",
        lambda self, *args, **options: calls.append(1) or real(self, *args, **options),
    )
    counts = []
    for options in ({}, PREFIXES):
        calls.clear()
        tiny_objective(method, options)(tiny_batch(method))
        counts.append(len(calls))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(
    ("method", "reason"),
    [("tlm", "predicts tokens"), ("cross_encoder", "no embeddings"), ("infoxlm", "middle layer")],
)
def test_methods_without_sentence_terms_say_why(method, reason):
    with pytest.raises(ConfigError, match=rf"matryoshka.*{reason}"):
        tiny_objective(method, PREFIXES)


def test_every_method_nests_or_says_why_not():
    for name in METHODS:
        method = resolve_name(METHODS, name)
        told = method.no_prefixes != resolve_name(METHODS, "labse").no_prefixes
        assert bool(method.nested_terms) != told, name


def test_a_sum_without_sentence_terms_is_refused():
    terms = {"hide": {"method": "tlm"}}
    with pytest.raises(ConfigError, match="matryoshka"):
        tiny_objective("combination", {"terms": terms, **PREFIXES})


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("dap", {"tr_weight": 0.0, "projection": True}, "tr_weight"),
        ("mexma", {"align_weight": 0.0, "koleo_weight": 0.0}, "align_weight and koleo_weight"),
    ],
)
def test_terms_that_are_switched_off_are_named(method, options, message):
    with pytest.raises(ConfigError, match=message):
        tiny_objective(method, {**options, **PREFIXES})


@pytest.mark.parametrize(
    ("dims", "weights", "message"),
    [
        ((), (), r"matryoshka is \[\]"),
        ((8, 16), (), "matryoshka is"),
        ((16, 8, 8), (), "matryoshka is"),
        ((16, 0), (), "dims: expected"),
        ((16, 8), (1.0,), "matryoshka_weights"),
        ((16, 8), (1.0, 0.0), "weights: expected"),
    ],
)
def test_senseless_widths_are_errors(dims, weights, message):
    with pytest.raises(ConfigError, match=message):
        Matryoshka(dims=dims, weights=weights)


def test_the_largest_width_is_the_encoder_s():
    with pytest.raises(ConfigError, match=r"matryoshka starts with 8, .* 16"):
        tiny_objective("labse", {"matryoshka": (8, 4)})


@pytest.mark.parametrize("method", ["labse", "combination", "multilingual_ir"])
def test_the_saved_model_says_what_it_can_be_cut_to(method, tmp_path):
    tiny_objective(method, PREFIXES).save(tmp_path / "model")
    towers = [tmp_path / "model", *(tmp_path / "model").glob("question_encoder")]
    assert len(towers) == (2 if method == "multilingual_ir" else 1)
    assert {Encoder.load(folder).settings.matryoshka_dims for folder in towers} == {
        PREFIXES["matryoshka"]
    }
