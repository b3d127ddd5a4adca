"""The names of ``import interlingua`` are there, and lazily so."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import interlingua
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder, load
from interlingua.errors import InterlinguaError
from interlingua.verbs.average import average
from interlingua.verbs.evaluate import evaluate
from interlingua.verbs.extend import extend
from interlingua.verbs.mine import mine
from interlingua.verbs.score import score


def test_each_name_is_what_it_says():
    assert set(interlingua.__all__) <= set(dir(interlingua))
    assert interlingua.Encoder is Encoder
    assert interlingua.InterlinguaError is InterlinguaError
    assert interlingua.evaluate is evaluate
    assert interlingua.load is load
    assert [interlingua.average, interlingua.extend] == [average, extend]
    assert [interlingua.mine, interlingua.score] == [mine, score]


def test_load_reads_a_model_directory(tmp_path, word_vocabulary):
    encoder = Encoder.from_scratch(
        BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size), word_vocabulary
    )
    encoder.save(tmp_path / "m")
    assert np.array_equal(
        interlingua.load(tmp_path / "m").encode(["de1 de2"]), encoder.encode(["de1 de2"])
    )


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'interlingua' .*attribute 'lode'"):
        _ = interlingua.lode


def test_names_cost_nothing_until_they_are_used():
    code = (
        "import sys, interlingua; assert 'load' in dir(interlingua); interlingua.InterlinguaError;"
        "assert 'torch' not in sys.modules;"
        "interlingua.load; assert 'torch' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "statement", ["import interlingua", "import interlingua.cli.main", "import interlingua.corpus"]
)
def test_bare_imports_bring_no_torch(statement):
    code = f"import sys; {statement}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
