"""Encoding on the simulated device."""

import dataclasses
import itertools
import threading

import numpy as np
import pytest
import torch

import interlingua
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors.inference import PlainBackbone
from interlingua.errors import ConfigError
from tests.accelerator.simulated import CUDA, Device, moved
from tests.methods.conftest import tiny_encoder

TEXTS = [
    " ".join(f"w{number * place % 7}" for place in range(1 + number % 9)) for number in range(40)
]


def pooled_by(pooling: str) -> Encoder:
    encoder = tiny_encoder().eval()
    encoder.settings = dataclasses.replace(encoder.settings, pooling=pooling)
    return encoder


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_vectors_on_cuda_are_those_of_the_cpu(cuda: Device, pooling):
    expected = pooled_by(pooling).encode(TEXTS)
    encoder = moved(pooled_by(pooling))
    with cuda.recorded() as waits:
        found = encoder.encode(TEXTS, batch_tokens=50)
    assert found == pytest.approx(expected, abs=1e-5)
    assert not waits


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "auto"])
def test_half_precision_takes_flash_attention(cuda: Device, dtype):
    expected = tiny_encoder().eval().encode(TEXTS)
    encoder = moved(tiny_encoder().eval())
    with cuda.recorded() as waits:
        found = encoder.encode(TEXTS, dtype=dtype)
    assert (found * expected).sum(axis=1).min() > 0.999
    assert cuda.launches["aten::_flash_attention_forward"]
    assert not waits


def test_order_of_texts_stays_with_many_batches(cuda: Device):
    encoder = moved(tiny_encoder().eval())
    with cuda.recorded():
        one_by_one = encoder.encode(TEXTS, batch_tokens=1)
        together = encoder.encode(TEXTS)
    assert np.allclose(one_by_one, together, atol=1e-5)


def test_the_next_batch_is_launched_before_the_host_waits_for_one(cuda: Device):
    encoder = moved(tiny_encoder().eval())
    with cuda.recorded():
        encoder.encode(TEXTS, batch_tokens=50)
    # An event is recorded behind the last launch of its batch.
    batches = [event for event, what in cuda.events if what == "recorded"]
    assert len(batches) > 3
    for batch, following in itertools.pairwise(batches):
        launched = cuda.events.index((following, "recorded"))
        assert launched < cuda.events.index((batch, "awaited"))
    assert cuda.events[-1] == (batches[-1], "awaited")


def test_batches_are_packed_in_a_thread_and_pinned_there(cuda: Device, monkeypatch):
    packed_by = set()
    pack = TokenBatch.from_lists

    def noted(*arguments):
        packed_by.add(threading.current_thread().name)
        return pack(*arguments)

    monkeypatch.setattr(TokenBatch, "from_lists", noted)
    encoder = moved(tiny_encoder().eval())
    with cuda.recorded():
        encoder.encode(TEXTS, batch_tokens=50)
        assert packed_by == {"prefetch"}
        assert "encoder/executors/inference.py" not in cuda.pins, (
            "the ids are pinned where they are packed"
        )
        encoder.encode(TEXTS[:1])
    assert packed_by == {"prefetch", "MainThread"}, "one batch needs no thread"


def test_int8_on_cuda_is_refused(cuda: Device):
    encoder = moved(tiny_encoder().eval())
    with cuda.recorded(), pytest.raises(ConfigError, match="int8"):
        encoder.encode(TEXTS, dtype="int8")


def test_tf32_is_on_while_a_batch_runs(cuda: Device, monkeypatch):
    seen = []
    run = PlainBackbone.__call__

    def recorded(self, *batch):
        seen.append(torch.backends.cuda.matmul.fp32_precision)
        return run(self, *batch)

    monkeypatch.setattr(PlainBackbone, "__call__", recorded)
    encoder = moved(tiny_encoder().eval())
    with cuda.recorded():
        encoder.encode(TEXTS, dtype="tf32")
        encoder.encode(TEXTS, dtype="float32")
    assert seen == ["tf32", torch.backends.cuda.matmul.fp32_precision]
    assert seen[1] != "tf32"


def test_load_takes_the_gpu_unless_a_device_is_named(cuda: Device, tmp_path):
    tiny_encoder().save(tmp_path / "model")
    with cuda.recorded():
        assert interlingua.load(tmp_path / "model").device == CUDA
        assert interlingua.load(tmp_path / "model", device="cpu").device.type == "cpu"
        assert interlingua.Encoder.load(tmp_path / "model").device.type == "cpu"
