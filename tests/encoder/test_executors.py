from __future__ import annotations

import copy
import ctypes
import json

import pytest
import torch

from interlingua.encoder import compiled, executors
from interlingua.encoder.backbone import Backbone, BackboneConfig
from interlingua.encoder.compiled import ByteMatrixBackbone, FloatBackbone, WeightLayout
from interlingua.encoder.encode import automatic_dtype_name
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors import (
    EXECUTORS,
    AutomaticDtype,
    Choice,
    Executor,
    automatic_dtype,
    choose,
    closeness,
    freeze,
)
from interlingua.encoder.inference import FrozenBackbone, PlainBackbone
from interlingua.encoder.static import StaticBackbone, static_config
from interlingua.errors import ConfigError
from interlingua.kernels import Kernel, library, rates
from interlingua.kernels.rates import VARIABLE, cache_file, remembered
from tests.encoder.naive import with_rounded_matrices
from tests.encoder.shapes import JINA_BERT, JINA_BERT_QK_NORM, MODERNBERT, SIZES

MULTIPLES_OF_16 = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 112}
"""Widths that the compiled kernel takes."""


class Slow(FrozenBackbone):
    """A kernel that gives right states, late."""

    def __call__(self, input_ids, cu_seqlens):
        end = rates.CLOCK() + 0.05
        while rates.CLOCK() < end:
            pass
        return super().__call__(input_ids, cu_seqlens)


class Instant(FrozenBackbone):
    """A kernel that needs no time."""

    def __call__(self, input_ids, cu_seqlens):
        return torch.zeros(len(input_ids), self.config.hidden_size)


def never(backbone, dtype):
    return None


@pytest.fixture(autouse=True)
def _measures(monkeypatch, tmp_path):
    """Nothing remembered, and a cache folder of its own."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(rates, "_MEASURED", {})


def made(**shape):
    torch.manual_seed(0)
    backbone = Backbone(BackboneConfig(vocab_size=60, **{**SIZES, **shape}))
    backbone.initialize("bert")
    return backbone.eval()


def with_kernel(monkeypatch, kernel, refusal=never):
    table = {"kernel": Executor(kernel, refusal), "torch": Executor(PlainBackbone, never)}
    monkeypatch.setattr(executors, "EXECUTORS", table)


def test_a_kernel_slower_than_torch_is_not_taken(monkeypatch):
    with_kernel(monkeypatch, Slow)
    backbone = made()
    choice = choose(backbone, torch.float32)
    assert (choice.executor, choice.reason) == ("torch", "the fastest")
    assert choice.rates["kernel"] < choice.rates["torch"] == choice.rate
    assert isinstance(freeze(backbone, torch.float32), PlainBackbone)


def test_a_faster_kernel_is_taken(monkeypatch):
    with_kernel(monkeypatch, Instant)
    assert choose(made(), torch.float32).executor == "kernel"


def test_rates_are_kept_for_the_next_process(monkeypatch):
    with_kernel(monkeypatch, Slow)
    backbone = made()
    first = choose(backbone, torch.float32)
    rates._MEASURED.clear()  # another process
    monkeypatch.setattr(executors, "_rates", lambda *_: pytest.fail("measured again"))
    again = choose(made(), torch.float32)
    assert again.rates == pytest.approx(first.rates, abs=0.1)
    assert cache_file().parent.name == "interlingua"
    [key] = remembered()
    assert rates.processor() in key
    assert "width=32" in key


@pytest.mark.parametrize("change", ["dtype", "shape", "processor", "executors"])
def test_what_decides_the_speed_is_measured_anew(monkeypatch, change):
    with_kernel(monkeypatch, Slow)
    choose(made(), torch.float32)
    calls = []
    monkeypatch.setattr(
        executors, "_rates", lambda frozen, _: calls.extend(frozen) or dict.fromkeys(frozen, 1.0)
    )
    if change == "processor":
        monkeypatch.setattr(rates, "processor", lambda: "another")
    if change == "executors":
        table = {**executors.EXECUTORS, "new": Executor(PlainBackbone, never)}
        monkeypatch.setattr(executors, "EXECUTORS", table)
    inner = 64 if change == "shape" else 48
    choose(made(intermediate_size=inner), torch.int8 if change == "dtype" else torch.float32)
    assert len(calls) == (3 if change == "executors" else 2)


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": {"b": "c"}}', "\x00"])
def test_a_damaged_file_is_measured_again(content):
    cache_file().parent.mkdir(parents=True)
    cache_file().write_text(content)
    assert remembered() == {}
    backbone = made()
    assert choose(backbone, torch.float32).rates
    assert json.loads(cache_file().read_text())


def test_a_folder_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with_kernel(monkeypatch, Slow)
    assert choose(made(), torch.float32).executor == "torch"


@pytest.mark.parametrize("name", list(EXECUTORS))
def test_the_variable_decides_where_it_can(monkeypatch, name):
    monkeypatch.setenv(VARIABLE, name)
    backbone = made()
    choice = choose(backbone, torch.float32)
    refusal = EXECUTORS[name].refusal(backbone, torch.float32)
    if refusal is None:
        assert (choice.executor, choice.rates) == (name, {})
    else:
        assert choice.executor != name
        assert refusal in choice.refused[name]


def test_a_kernel_that_cannot_is_left_out_and_says_why(monkeypatch):
    monkeypatch.setenv(VARIABLE, "kernel")
    choice = choose(made(**MODERNBERT), torch.float32)
    assert choice.executor in ("onednn", "torch")
    assert "BERT's layer" in choice.refused["kernel"]
    frozen = freeze(made(**MODERNBERT), torch.float32)
    assert frozen(torch.tensor([5, 6, 7]), torch.tensor([0, 3])).shape == (3, 32)


@pytest.fixture
def untimed(monkeypatch, use_variant, emulated_matrices):
    """The variant i8mm runs here, and was never timed."""
    if emulated_matrices is None:
        pytest.skip("needs a C compiler and AVX2")
    use_variant("avx2")
    library = ctypes.CDLL(str(emulated_matrices / "layers.i8mm.so"))
    monkeypatch.setattr(compiled, "find_unmeasured", lambda name, kind: Kernel(kind, library))


@pytest.mark.usefixtures("untimed")
def test_an_untimed_kernel_is_tried_where_it_differs(random_batch):
    backbone, batch = made(**MULTIPLES_OF_16), random_batch([3, 12, 5], high=60)
    for dtype in (torch.bfloat16, torch.int8):
        assert {"kernel", "kernel-i8mm"} <= choose(backbone, dtype).rates.keys()
    assert "float32" in choose(backbone, torch.float32).refused["kernel-i8mm"]
    states = []
    for name in ("kernel", "kernel-i8mm"):
        frozen = EXECUTORS[name].make(backbone, torch.int8)
        states.append(frozen(batch.input_ids, batch.cu_seqlens))
    assert torch.equal(*states)


@pytest.mark.usefixtures("untimed")
@pytest.mark.parametrize(("rate", "expected"), [(1.04, "kernel"), (1.06, "kernel-i8mm")])
def test_an_untimed_kernel_has_to_be_faster_by_the_margin(monkeypatch, rate, expected):
    def rates(frozen, backbone):
        return {name: rate if name == "kernel-i8mm" else 1.0 for name in frozen}

    monkeypatch.setattr(executors, "_rates", rates)
    backbone = made(**MULTIPLES_OF_16)
    assert choose(backbone, torch.int8).executor == expected
    is_untimed = isinstance(freeze(backbone, torch.int8), ByteMatrixBackbone)
    assert is_untimed == (expected == "kernel-i8mm")


@pytest.fixture
def multiplies_bfloats():
    """A backbone that the kernel takes, where the kernel multiplies bfloats."""
    backbone = made(**MULTIPLES_OF_16)
    if not compiled.layout_of(library("layers")).bfloats or FloatBackbone.refusal(
        backbone, torch.int8
    ):
        pytest.skip("no such kernel here")
    return backbone


def test_the_float32_kernel_rounds_weights_to_bfloat16(multiplies_bfloats, random_batch):
    batch = random_batch([3, 12, 5], high=60)
    rounded = with_rounded_matrices(multiplies_bfloats)
    exact = EXECUTORS["kernel"].make(rounded, torch.float32)
    frozen = EXECUTORS["kernel-float32"].make(multiplies_bfloats, torch.bfloat16)
    assert frozen.dtype == torch.bfloat16
    states = [form(batch.input_ids, batch.cu_seqlens) for form in (exact, frozen)]
    assert torch.equal(*states)


def test_int8_by_the_float32_kernel_is_nearer_to_float32(multiplies_bfloats, random_batch):
    batch = random_batch([3, 12, 5, 30, 7], high=60)
    exact = multiplies_bfloats(batch.input_ids, batch.cu_seqlens)
    gaps = []
    for name in ("kernel-float32", "kernel"):
        frozen = EXECUTORS[name].make(multiplies_bfloats, torch.int8)
        gaps.append((frozen(batch.input_ids, batch.cu_seqlens) - exact).abs().mean().item())
    assert 0 < gaps[0] < gaps[1]


def test_onednn_in_float32_serves_bfloat16(random_batch):
    backbone, batch = made(**MODERNBERT), random_batch([3, 12, 5], high=60)
    onednn = EXECUTORS["onednn-float32"]
    assert "bfloat16" in onednn.refusal(backbone, torch.float32)
    if onednn.refusal(backbone, torch.bfloat16) is not None:
        pytest.skip("torch has no oneDNN here")
    frozen = onednn.make(backbone, torch.bfloat16)
    assert frozen.dtype == torch.bfloat16
    states = frozen(batch.input_ids, batch.cu_seqlens)
    expected = EXECUTORS["onednn"].make(backbone, torch.float32)(batch.input_ids, batch.cu_seqlens)
    assert torch.equal(states, expected)


@pytest.mark.parametrize(("rate", "expected"), [(1.04, "kernel"), (1.06, "kernel-float32")])
def test_float32_has_to_be_faster_by_the_margin(monkeypatch, multiplies_bfloats, rate, expected):
    def rates(frozen, backbone):
        return {name: rate if name == "kernel-float32" else 1.0 for name in frozen}

    monkeypatch.setattr(executors, "_rates", rates)
    assert choose(multiplies_bfloats, torch.bfloat16).executor == expected
    is_float = isinstance(freeze(multiplies_bfloats, torch.bfloat16), FloatBackbone)
    assert is_float == (expected == "kernel-float32")


def test_tiles_and_kernels_without_bfloats_refuse_float32(monkeypatch):
    backbone = made(hidden_size=128, num_attention_heads=4, intermediate_size=128)
    monkeypatch.setattr(FloatBackbone, "_library", staticmethod(lambda: object()))
    layouts = {
        "by tiles": WeightLayout(panel=16, bfloats=True, tiles=True, bytes_to_bfloats=True),
        "what the executor kernel does": WeightLayout(panel=16, bfloats=False),
    }
    for reason, layout in layouts.items():
        monkeypatch.setattr(compiled, "layout_of", lambda kernel, layout=layout: layout)
        assert reason in FloatBackbone.refusal(backbone, torch.bfloat16)
        assert "kernel does" in FloatBackbone.refusal(backbone, torch.float32)


def test_first_measures_nothing(monkeypatch):
    monkeypatch.setenv(VARIABLE, "first")
    monkeypatch.setattr(executors, "_rates", lambda *_: pytest.fail("measured"))
    with_kernel(monkeypatch, Slow)
    assert choose(made(), torch.float32) == Choice(executor="kernel", reason=f"{VARIABLE} is first")


def test_an_unknown_name_is_an_error(monkeypatch):
    monkeypatch.setenv(VARIABLE, "onedn")
    with pytest.raises(ConfigError, match="onednn"):
        choose(made(), torch.float32)


@pytest.mark.parametrize("shape", [{}, MODERNBERT, JINA_BERT, JINA_BERT_QK_NORM])
def test_every_executor_gives_equal_states(shape, random_batch):
    backbone, batch = made(**shape), random_batch([3, 12, 5], high=60)
    expected = backbone(batch.input_ids, batch.cu_seqlens)
    for executor in EXECUTORS.values():
        if executor.refusal(backbone, torch.float32) is None:
            frozen = executor.make(backbone, torch.float32)
            torch.testing.assert_close(
                frozen(batch.input_ids, batch.cu_seqlens), expected, atol=1e-5, rtol=1e-5
            )


def rates_of(monkeypatch, rates, cosines):
    def chosen(backbone, dtype, *, always_measure):
        return Choice(executor="torch", reason="", rates={"torch": rates[dtype]})

    monkeypatch.setattr(executors, "choose", chosen)
    monkeypatch.setattr(executors, "closeness", lambda backbone, dtype: cosines[dtype])


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
    rates_of(
        monkeypatch,
        dict(zip(dtypes, rates, strict=True)),
        dict(zip(dtypes[1:], cosines, strict=True)),
    )
    found = automatic_dtype(made())
    assert isinstance(found, AutomaticDtype)
    assert found.dtype == expected


def test_closeness_is_the_cosine_of_mean_states(monkeypatch):
    monkeypatch.setenv(VARIABLE, "torch")  # which computes bfloat16 in bfloats
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
    config = static_config(word_vocabulary.size, 4, pad_token_id=word_vocabulary.pad_id)
    assert automatic_dtype_name(Encoder(StaticBackbone(config), word_vocabulary)) == "float32"


def test_encode_takes_auto(framed_encoder, sentences):
    found = framed_encoder.encode(sentences, dtype="auto")
    assert (found * framed_encoder.encode(sentences)).sum(1).min() > 0.999
