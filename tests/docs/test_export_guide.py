"""docs/how-to/export.md: its commands are run in the order of the page, then its Python parts."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from tests.docs.markdown import follow
from tests.exporters.test_gguf import encoder_of, unigram
from tests.tiny import tiny_encoder

pytest.importorskip("xllamacpp")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "export.md"
QUICK = "run.max_steps=4 --set run.global_batch_size=8 --set data.valid_pairs=8 --set run.threads=1"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary, prepared):
    folder = tmp_path_factory.mktemp("export")
    tiny_encoder(word_vocabulary).save(folder / "model")
    encoder_of(unigram()).save(folder / "models" / "multilingual-e5-small")
    shutil.copytree(prepared, folder / "prepared")
    (folder / "texts").mkdir()
    (folder / "texts" / "de.txt").write_text("de1 de2\nde3\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(workplace):
    return follow(PAGE, workplace, instead={"run.max_steps=300": QUICK}, opening=False)


def test_every_command_does_what_the_page_says(done, workplace):
    exported, compact, gguf, graphs, again, static = done.values()
    assert "sentence-transformers" in exported
    assert [word in compact for word in ("sentence-transformers", "onnx int8")] == [True, True]
    assert "llama.cpp" in gguf
    header = next(line for line in graphs.splitlines() if line.startswith("1 - smallest cosine"))
    assert re.split("  +", header)[1:] == ["onnx", "onnx int8", "openvino"]
    assert header in PAGE.read_text(encoding="utf-8")
    assert "32 texts" in again
    assert "times as many texts per second" in static
    assert (workplace / "static-training" / "run").is_dir()


def test_the_python_parts_run(done, workplace):
    code = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    names = []
    with contextlib.chdir(workplace):
        for part in code:
            names.append({})
            exec(compile(part, PAGE.name, "exec"), names[-1])
    own = Encoder.load(workplace / "model").encode(
        ["The cat sits on the mat.", "Die Katze sitzt auf der Matte."]
    )
    np.testing.assert_allclose(names[0]["vectors"], own, atol=1e-5)
    assert names[1]["vectors"].shape == (2, 32)
