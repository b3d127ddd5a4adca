from __future__ import annotations

import copy
import json

import pytest
import torch

from interlingua.encoder.encode import automatic_dtype_name
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors import choice as choice_module
from interlingua.encoder.executors import compiled, layers
from interlingua.encoder.executors.choice import (
    _NAMES,
    EXECUTOR_VARIABLE,
    Choice,
    cache_file,
    remembered,
)
from interlingua.encoder.executors.compiled import Int16Backbone, WeightLayout
from interlingua.encoder.executors.inference import PlainBackbone
from interlingua.encoder.executors.layers import (
    LAYER_EXECUTORS,
    AutomaticDtype,
    automatic_dtype,
    choose_layer_executor,
    closeness,
    freeze,
)
from interlingua.encoder.static import StaticBackbone, static_model_config
from interlingua.errors import ConfigError
from tests.encoder.shapes import JINA_BERT, JINA_BERT_QK_NORM, MODERNBERT, states_of, tiny_backbone

MULTIPLES_OF_16 = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 112}
"""Widths that the compiled kernel takes."""


class Slow(PlainBackbone):
    """A kernel that gives right states, late."""

    def __call__(self, input_ids, cu_seqlens):
        end = choice_module.CLOCK() + 0.05
        while choice_module.CLOCK() < end:
            pass
        return super().__call__(input_ids, cu_seqlens)


class Instant(PlainBackbone):
    """A kernel that needs no time."""

    def __call__(self, input_ids, cu_seqlens):
        return torch.zeros(len(input_ids), self.config.hidden_size)


@pytest.fixture(autouse=True)
def _measures(monkeypatch, tmp_path):
    """No stored measurements, and a separate cache folder."""
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(choice_module, "_MEASURED", {})


def made(**shape):
    return tiny_backbone("bert", noise=0, vocab_size=60, **shape)


def with_kernel(monkeypatch, kernel):
    monkeypatch.setattr(layers, "LAYER_EXECUTORS", {"kernel": kernel, "torch": PlainBackbone})


def test_a_kernel_slower_than_torch_is_not_taken(monkeypatch):
    with_kernel(monkeypatch, Slow)
    backbone = made()
    choice = choose_layer_executor(backbone, torch.float32)
    assert (choice.executor, choice.reason) == ("torch", "the fastest")
    assert choice.rates["kernel"] < choice.rates["torch"] == choice.rate
    assert type(freeze(backbone, torch.float32)) is PlainBackbone


def test_a_faster_kernel_is_taken(monkeypatch):
    with_kernel(monkeypatch, Instant)
    assert choose_layer_executor(made(), torch.float32).executor == "kernel"


def test_rates_are_kept_for_the_next_process(monkeypatch):
    with_kernel(monkeypatch, Slow)
    backbone = made()
    first = choose_layer_executor(backbone, torch.float32)
    choice_module._MEASURED.clear()  # another process
    monkeypatch.setattr(choice_module, "trial_rates", lambda _: pytest.fail("measured again"))
    again = choose_layer_executor(made(), torch.float32)
    assert again.rates == pytest.approx(first.rates, abs=0.1)
    assert cache_file().parent.name == "interlingua"
    [key] = remembered()
    assert choice_module.processor() in key
    assert "width=32" in key


@pytest.mark.parametrize("change", ["dtype", "shape", "processor", "executors"])
def test_what_decides_the_speed_is_measured_anew(monkeypatch, change):
    with_kernel(monkeypatch, Slow)
    choose_layer_executor(made(), torch.float32)
    calls = []

    def measure(trial):
        calls.extend(trial().runs)
        return dict.fromkeys(calls, 1.0)

    monkeypatch.setattr(choice_module, "trial_rates", measure)
    if change == "processor":
        monkeypatch.setattr(choice_module, "processor", lambda: "another")
    if change == "executors":
        monkeypatch.setitem(layers.LAYER_EXECUTORS, "new", PlainBackbone)
    inner = 64 if change == "shape" else 48
    choose_layer_executor(
        made(intermediate_size=inner), torch.int8 if change == "dtype" else torch.float32
    )
    assert len(calls) == (3 if change == "executors" else 2)


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": {"b": "c"}}', "\x00"])
def test_a_damaged_file_is_measured_again(content):
    cache_file().parent.mkdir(parents=True)
    cache_file().write_text(content)
    assert remembered() == {}
    backbone = made()
    assert choose_layer_executor(backbone, torch.float32).rates
    assert json.loads(cache_file().read_text())


def test_a_folder_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with_kernel(monkeypatch, Slow)
    assert choose_layer_executor(made(), torch.float32).executor == "torch"


@pytest.mark.parametrize("name", list(LAYER_EXECUTORS))
def test_the_variable_decides_where_it_can(monkeypatch, name):
    monkeypatch.setenv(EXECUTOR_VARIABLE, name)
    backbone = made()
    choice = choose_layer_executor(backbone, torch.float32)
    refusal = LAYER_EXECUTORS[name].refusal(backbone, torch.float32)
    if refusal is None:
        assert (choice.executor, choice.rates) == (name, {})
    else:
        assert choice.executor != name
        assert refusal in choice.refused[name]


def test_a_kernel_that_cannot_is_left_out_and_says_why(monkeypatch):
    monkeypatch.setenv(EXECUTOR_VARIABLE, "kernel")
    choice = choose_layer_executor(made(**MODERNBERT), torch.float32)
    assert choice.executor in ("onednn", "torch")
    assert "not a multiple of 16" in choice.refused["kernel"]
    frozen = freeze(made(**MODERNBERT), torch.float32)
    assert frozen(torch.tensor([5, 6, 7]), torch.tensor([0, 3])).shape == (3, 32)


@pytest.fixture
def multiplies_int16():
    """A backbone that the kernel supports, if the kernel multiplies int16."""
    backbone = made(**MULTIPLES_OF_16)
    if Int16Backbone.refusal(backbone, torch.int8) is not None:
        pytest.skip("no such kernel here")
    return backbone


def test_the_kernel_in_int16_is_tried_where_it_differs(multiplies_int16):
    for dtype in (torch.bfloat16, torch.int8):
        assert {"kernel", "kernel-int16"} <= choose_layer_executor(
            multiplies_int16, dtype
        ).rates.keys()
        assert LAYER_EXECUTORS["kernel-int16"](multiplies_int16, dtype).dtype == dtype
    assert (
        "float32" in choose_layer_executor(multiplies_int16, torch.float32).refused["kernel-int16"]
    )


@pytest.mark.parametrize("rate", [1.04, 1.06])
def test_a_later_kernel_has_to_be_faster_by_the_margin(monkeypatch, multiplies_int16, rate):
    name = "kernel-int16"
    monkeypatch.setattr(
        choice_module, "trial_rates", lambda trial: dict.fromkeys(trial().runs, 1.0) | {name: rate}
    )
    expected = name if rate > 1.05 else "kernel"
    assert choose_layer_executor(multiplies_int16, torch.bfloat16).executor == expected
    assert type(freeze(multiplies_int16, torch.bfloat16)) is LAYER_EXECUTORS[expected]


def test_tiles_and_kernels_without_int16_refuse_it(monkeypatch):
    backbone = made(hidden_size=128, num_attention_heads=4, intermediate_size=128)
    monkeypatch.setattr(compiled, "library", lambda name: object())
    layouts = {
        "tiles": WeightLayout(panel=32, bfloats=True, tiles=True, int16s=True),
        "not multiply int16": WeightLayout(panel=16, bfloats=False),
    }
    for reason, layout in layouts.items():
        monkeypatch.setattr(compiled, "layout_of", lambda kernel, layout=layout: layout)
        assert reason in Int16Backbone.refusal(backbone, torch.bfloat16)
        assert "executor kernel" in Int16Backbone.refusal(backbone, torch.float32)


def test_first_measures_nothing(monkeypatch):
    monkeypatch.setenv(EXECUTOR_VARIABLE, "first")
    monkeypatch.setattr(choice_module, "trial_rates", lambda _: pytest.fail("measured"))
    with_kernel(monkeypatch, Slow)
    assert choose_layer_executor(made(), torch.float32) == Choice(
        executor="kernel", reason=f"{EXECUTOR_VARIABLE} is first"
    )


def test_the_variable_can_name_every_executor():
    assert list(LAYER_EXECUTORS) == list(_NAMES)


def test_an_unknown_name_is_an_error(monkeypatch):
    monkeypatch.setenv(EXECUTOR_VARIABLE, "onedn")
    with pytest.raises(ConfigError, match="onednn"):
        choose_layer_executor(made(), torch.float32)


@pytest.mark.parametrize("shape", [{}, MODERNBERT, JINA_BERT, JINA_BERT_QK_NORM])
def test_every_executor_gives_equal_states(shape, random_batch):
    backbone, batch = made(**shape), random_batch([3, 12, 5], high=60)
    expected = states_of(backbone, batch)
    for executor in LAYER_EXECUTORS.values():
        if executor.refusal(backbone, torch.float32) is None:
            found = states_of(executor(backbone, torch.float32), batch)
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


CLOSE = (0.99995, 0.9995)


@pytest.mark.parametrize(
    ("rates", "cosines", "expected"),
    [
        ((1.0, 2.0, 3.0), (CLOSE, CLOSE), torch.int8),
        ((1.0, 2.0, 3.0), (CLOSE, (0.9998, 0.9995)), torch.bfloat16),
        ((1.0, 2.0, 3.0), (CLOSE, (0.99995, 0.998)), torch.bfloat16),
        ((1.0, 2.0, 3.0), ((0.9, 0.9), (0.9, 0.9)), torch.float32),
        ((1.0, 1.04, 0.5), (CLOSE, CLOSE), torch.float32),
        ((1.0, 1.06, 0.5), (CLOSE, CLOSE), torch.bfloat16),
    ],
)
def test_auto_is_the_fastest_that_stays_close(monkeypatch, rates, cosines, expected):
    dtypes = (torch.float32, torch.bfloat16, torch.int8)
    rate_of = dict(zip(dtypes, rates, strict=True))
    cosines_of = dict(zip(dtypes[1:], cosines, strict=True))

    def chosen(backbone, dtype, *, always_measure):
        return Choice(executor="torch", reason="", rates={"torch": rate_of[dtype]})

    monkeypatch.setattr(layers, "choose_layer_executor", chosen)
    monkeypatch.setattr(layers, "closeness", lambda backbone, dtype: cosines_of[dtype])
    found = automatic_dtype(made())
    assert isinstance(found, AutomaticDtype)
    assert found.dtype == expected


def test_closeness_is_the_cosine_of_mean_states(monkeypatch):
    monkeypatch.setenv(EXECUTOR_VARIABLE, "torch")  # which computes bfloat16 in bfloats
    backbone = made()
    assert closeness(backbone, torch.float32) == pytest.approx((1.0, 1.0), abs=1e-6)
    mean, lowest = closeness(backbone, torch.bfloat16)
    assert 0.99 < lowest < mean < 1 - 1e-7


@pytest.mark.parametrize("chosen", ["float32", "bfloat16", "int8"])
def test_what_auto_stands_for_has_a_name(framed_encoder, monkeypatch, chosen):
    found = AutomaticDtype(dtype=getattr(torch, chosen), choices={}, cosines={})
    monkeypatch.setattr("interlingua.encoder.snapshots.automatic_dtype", lambda _: found)
    assert automatic_dtype_name(copy.deepcopy(framed_encoder)) == chosen


def test_a_table_of_token_vectors_computes_in_float32(word_vocabulary):
    config = static_model_config(word_vocabulary.size, 4, pad_token_id=word_vocabulary.pad_id)
    assert automatic_dtype_name(Encoder(StaticBackbone(config), word_vocabulary)) == "float32"


def test_encode_takes_auto(framed_encoder, sentences):
    found = framed_encoder.encode(sentences, dtype="auto")
    assert (found * framed_encoder.encode(sentences)).sum(1).min() > 0.999
