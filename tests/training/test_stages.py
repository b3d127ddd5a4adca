"""Runs in a row: what is requested, what is handed on, and that a stop anywhere changes nothing."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from interlingua.config import load_toml
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.pair_scorer import PairScorer
from interlingua.errors import CheckpointError, ConfigError
from interlingua.storage import formats
from interlingua.storage.files import sha256_tree
from interlingua.storage.locks import exclusive
from interlingua.storage.record import render_record
from interlingua.training.stages import is_staged, load_stages, run_stages
from tests.conftest import translate

RUN = """
[data]
corpus = "{corpus}"
valid_pairs = 8
{labeled}
[encoder]
preset = "ems-tiny"

[method]
name = "{method}"

[run]
output = "unused"
max_steps = {steps}
global_batch_size = 8
precision = "fp32"
device = "cpu"
threads = 1
logging_steps = 1
save_steps = 2
"""
LABELED = """
[data.labeled]
paths = ["{train}"]
kind = "sts"
valid = ["{train}"]
"""
STAGES = """
output = "{folder}/out"

[[stage]]
name = "cross"
config = "cross.toml"

[[stage]]
name = "silver"
silver.gold = ["{train}"]
silver.sentence_encoder = "{{cross.model}}"
silver.cross_encoder = "{{cross.best}}"
silver.neighbors = 3

[[stage]]
name = "sts"
config = "sts.toml"
set.data.labeled.paths = ["{train}", "{{silver.silver}}"]

[[stage]]
name = "main"
config = "main.toml"
set.encoder.path = "{{sts.best}}"
set.run.seed = 3
"""


@pytest.fixture
def staged(tmp_path, prepared):
    """Four stages: a cross-encoder, silver pairs, regression on both, alignment."""
    sentences = [
        " ".join(translate((3 * i + j) % 40, "eng_Latn") for j in range(3)) for i in range(12)
    ]
    train = tmp_path / "gold.tsv"
    train.write_text(
        "".join(f"{a}\t{b}\t{i % 6}\n" for i, (a, b) in enumerate(pairwise(sentences)))
    )
    for name, method, steps in (
        ("cross", "cross_encoder", 4),
        ("sts", "sts", 6),
        ("main", "calibrated", 6),
    ):
        labeled = "" if method == "calibrated" else LABELED.format(train=train)
        text = RUN.format(corpus=prepared, labeled=labeled, method=method, steps=steps)
        (tmp_path / f"{name}.toml").write_text(text)
    path = tmp_path / "all.toml"
    path.write_text(STAGES.format(folder=tmp_path, train=train))
    return path


def run(path, *overrides, resume="auto", evaluate=None):
    output, stages = load_stages(path, overrides=overrides)
    return output, run_stages(
        output, stages, evaluator=lambda config: evaluate, resume=resume, progress=False
    )


def models(output):
    return {path.parent.name: sha256_tree(path) for path in sorted(output.glob("*/model"))}


def test_what_is_a_file_of_stages(staged):
    assert is_staged(staged)
    assert not is_staged(staged.with_name("sts.toml"))


def test_references_and_overrides(staged, tmp_path):
    output, (cross, silver, sts, main) = load_stages(
        staged, overrides=["run.seed=7", "sts.run.num_train_epochs=2", "silver.silver.neighbors=5"]
    )
    assert output == tmp_path / "out"
    assert silver.run.neighbors == 5
    assert silver.run.sentence_encoder == str(output / "cross" / "model")
    assert silver.inputs == (output / "cross" / "model", output / "cross" / "best")
    assert sts.run.data.labeled.paths[1] == output / "silver" / "silver.tsv"
    assert (sts.run.run.max_steps, sts.run.run.num_train_epochs) == (
        None,
        2.0,
    )  # one length takes the other's place
    assert (main.run.encoder.path, main.run.encoder.preset) == (str(output / "sts" / "best"), None)
    assert [stage.run.run.seed for stage in (cross, sts, main)] == [
        7,
        7,
        3,
    ]  # the stage's own goes before all runs'
    assert [stage.run.run.output for stage in (cross, sts, main)] == [
        output / n for n in ("cross", "sts", "main")
    ]


def test_all_in_a_row_and_nothing_twice(staged, capsys):
    output, results = run(staged)
    assert [result.step for result in results] == [4, 6, 6]
    assert PairScorer.load(output / "cross" / "best").encoder.dim == 32
    manifest = json.loads((output / "silver" / "manifest.json").read_text())
    assert manifest["models"]["cross_encoder"]["path"] == str(output / "cross" / "best")
    assert manifest["report"]["pairs"] > 0
    before = models(output)
    assert list(before) == ["cross", "main", "sts"]
    assert run(staged)[1] == []
    assert models(output) == before
    assert Encoder.load(output / "main" / "model").dim == 32


def test_another_config_of_an_earlier_stage_is_noticed(staged):
    run(staged)
    with pytest.raises(ConfigError, match=r"stage cross .*: run\.seed \(0, 5\)"):
        run(staged, "cross.run.seed=5")
    with pytest.raises(ConfigError, match=r"stage silver .*: neighbors \(3, 4\)"):
        run(staged, "silver.silver.neighbors=4")
    assert (
        run(staged, "run.logging_steps=2", "run.threads=1")[1] == []
    )  # these belong to the run, not to the result
    assert [result.step for result in run(staged, "cross.run.seed=5", resume="never")[1]] == [
        4,
        6,
        6,
    ]


def test_a_changed_model_of_an_earlier_stage_is_noticed(staged):
    output, _ = run(staged)
    (output / "sts" / "best" / "README.md").write_text("changed")
    with pytest.raises(CheckpointError, match=r"sts/best: .*--resume never"):
        run(staged)


def test_a_missing_model_of_an_earlier_stage(staged):
    output, _ = run(staged)
    for file in (output / "silver").iterdir():
        file.unlink()
    with pytest.raises(CheckpointError, match=r"silver/manifest\.json: .*--resume never"):
        run(staged)


def test_stages_go_on_by_themselves(staged):
    with pytest.raises(ConfigError, match="--resume"):
        run(staged, resume="out/sts/checkpoints/step-00000002")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"stages\.json: is damaged"),
        (render_record(formats.STAGES, {"cross": {}}), r"stages\.json: is damaged"),
        ("{}", r"stages\.json: .*--resume never"),
        (
            render_record(formats.STAGES, {"stages": {"cross": {"done": True}}}),
            r"stages\.json: .*stage cross",
        ),
        (render_record(formats.STAGES, {"stages": {"cross": 3}}), r"stages\.json: .*stage cross"),
    ],
    ids=["not JSON", "no stages", "no record", "no config", "no stage"],
)
def test_a_damaged_record(staged, content, message):
    output, _ = load_stages(staged)
    output.mkdir()
    (output / "stages.json").write_text(content)
    with pytest.raises(CheckpointError, match=message):
        run(staged)


RUN_A = '[[stage]]\nname = "a"\nconfig = "sts.toml"\n'
SILVER = (
    '[[stage]]\nname = "s"\nsilver = {gold = ["g"], sentence_encoder = "x", cross_encoder = "y"}\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUN_A.replace('"a"', '"a b"'), "the name may contain"),
        (RUN_A.replace('config = "sts.toml"', ""), "either config"),
        (RUN_A + RUN_A, "two stages"),
        (SILVER + "set.x = 1", "set requires config"),
        (RUN_A + 'set.encoder.path = "{b.best}"', r"\{b\.best\} does not name"),
        (RUN_A + 'set.encoder.path = "{a.best}"', r"\{a\.best\} does not name"),
        (SILVER + RUN_A + 'set.encoder.path = "{s.best}"', r"\{s\.silver\}"),
        (RUN_A.replace("sts", "none"), r"none\.toml: file not found"),
        (RUN_A + "set.run.max_stpes = 3", "unknown key 'run.max_stpes'"),
        (SILVER.replace('"y"', '"y", neighbors = 0'), "neighbors: expected"),
    ],
)
def test_mistakes_are_found_before_anything_runs(staged, text, message):
    staged.write_text(f'output = "out"\n{text}\n')
    with pytest.raises(ConfigError, match=message):
        load_stages(staged)


def test_the_record_keeps_what_was_asked(staged):
    output, _ = run(staged)
    asked = json.loads((output / "stages.json").read_text())["stages"]["main"]["requested"]
    assert asked["encoder"]["path"] == str(output / "sts" / "best")
    assert load_toml(output / "main" / "config.toml")["run"]["seed"] == asked["run"]["seed"] == 3


def test_one_run_of_the_stages_at_a_time(staged):
    output, stages = load_stages(staged)
    lock = exclusive(output, remedy="x")
    with lock, pytest.raises(ConfigError, match=r"in use .*set output to"):
        run_stages(output, stages, evaluator=lambda run: None, progress=False)
