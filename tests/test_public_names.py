"""The names of ``import interlingua`` are there, and lazily so."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import interlingua
from interlingua.cli.main import VERBS
from interlingua.encoder.encoder import Encoder, load
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError, InterlinguaError
from interlingua.verbs.average import average
from interlingua.verbs.evaluate import evaluate
from interlingua.verbs.extend import extend
from interlingua.verbs.mine import mine
from interlingua.verbs.score import score
from tests.tiny import tiny_encoder


def test_each_name_is_what_it_says():
    assert set(interlingua.__all__) <= set(dir(interlingua))
    assert interlingua.Encoder is Encoder
    assert interlingua.InterlinguaError is InterlinguaError
    assert interlingua.evaluate is evaluate
    assert interlingua.load is load
    assert [interlingua.average, interlingua.extend] == [average, extend]
    assert [interlingua.mine, interlingua.score] == [mine, score]


def test_dir_lists_the_public_names_alone():
    import interlingua.training.loop

    assert dir(interlingua) == sorted(interlingua.__all__)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([], {"treshold": 1}),
        (["x"] * 9, {}),
        ([], {"output": 4.5}),
        ([np.zeros((2, 3), dtype=np.float32), np.zeros(3)], {}),
    ],
)
def test_a_wrong_call_of_a_verb_is_an_error_of_ours_in_one_line(verb, values, named):
    with pytest.raises(ConfigError) as error:
        getattr(interlingua, verb)(*values, **named)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: interlingua.search("folder"), "search requires questions"),
        (lambda: interlingua.search("folder", "q", top="5"), "top"),
        (lambda: interlingua.index("build", "mini"), "arguments: .*a list"),
        (lambda: interlingua.index("build", "mini", "docs.txt"), "arguments, option"),
        (lambda: interlingua.mine("mini"), "mine requires source"),
        (lambda: interlingua.mine("mini", ["a"], ["b"], tresh=1), "'threshold'"),
        (lambda: interlingua.evaluate("mini", data=3), "data"),
        (lambda: interlingua.evaluate("mini", budget=5), "budget"),
        (lambda: interlingua.debias(vectors=np.zeros((2, 3))), "labels"),
        (lambda: interlingua.average("mini", "out"), "models: .*a list"),
        (lambda: interlingua.average(["mini"], "out", weights=0.4), "weights"),
        (lambda: interlingua.extend("mini", 3, "eu", "out"), "pairs"),
        (lambda: interlingua.quickstart(catalogues="folder"), "catalogues"),
    ],
)
def test_what_users_call_in_a_wrong_way_names_the_argument(call, told):
    with pytest.raises(ConfigError, match=told):
        call()


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


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_encoder(word_vocabulary).save(folder)
    return folder


HEAVY = "sympy torch._dynamo torch.onnx transformers sentence_transformers scipy pandas sklearn"
HEAVY += " sentencepiece huggingface_hub lightning jinja2 pyarrow lancedb"


@pytest.mark.parametrize("verb", ["embed", "encode"])
def test_a_first_vector_brings_torch_and_no_other_heavy_package(verb, model_folder, tmp_path):
    # A cold start is the time of its imports: torch takes half of it.
    (tmp_path / "a.txt").write_text("de1\n", encoding="utf-8")
    code = f"import interlingua; interlingua.load({str(model_folder)!r}).encode(['de1'])"
    if verb == "embed":
        arguments = ["embed", str(model_folder), "a.txt", "-o", "a.npy"]
        code = f"from interlingua.cli.main import main; main({arguments!r})"
    # At the exit, as a command ends with one.
    report = f"print(*sorted(set({HEAVY.split()!r}) & sys.modules.keys()))"
    code = f"import atexit, sys; atexit.register(lambda: {report}); {code}"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert found.stdout.splitlines()[-1] == ""
