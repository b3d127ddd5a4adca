import json
import signal
import subprocess
import sys
import time

import pytest

from interlingua.cli.main import main

TOML = """
[data]
corpus = "{corpus}"
valid_pairs = 32
[encoder]
preset = "ems-tiny"
[method]
name = "ems"
[run]
output = "{output}"
max_steps = {steps}
global_batch_size = 16
precision = "fp32"
device = "cpu"
threads = 1
metric_for_best_model = "tatoeba_accuracy"
"""


@pytest.fixture
def config(prepared, tmp_path):
    def write(steps):
        path = tmp_path / "config.toml"
        path.write_text(TOML.format(corpus=prepared, output=tmp_path / "run", steps=steps), encoding="utf-8")
        return path

    return write


def run(*arguments):
    with pytest.raises(SystemExit) as caught:
        main(["train", *map(str, arguments)])
    return caught.value.code


def test_trains_and_says_what_next(config, tmp_path, capsys):
    assert run(config(10), "--set", "run.max_steps=4", "-o", tmp_path / "other") == 0
    out, err = capsys.readouterr()
    assert "4 steps, " in out
    assert "pairs seen: deu_Latn-eng_Latn 40, rus_Cyrl-eng_Latn 24" in out
    assert f"next:  interlingua evaluate {tmp_path}/other/best --suite tatoeba,xsim" in out
    assert "step 4 | valid_loss" in err
    assert "tatoeba_accuracy" in err
    assert run(tmp_path / "other" / "config.toml") == 0  # finished: says the same at once
    assert capsys.readouterr().out == out


def test_quiet(config, capsys):
    assert run(config(2), "--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "run.seeds=1"], "did you mean 'seed'"),
        (["--set", "data.corpus=nowhere"], "run: interlingua prepare"),
        (["--resume", "nowhere/step-00000001"], "state.json is missing"),
    ],
)
def test_users_errors_are_one_line(config, capsys, arguments, message):
    assert run(config(2), *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_ctrl_c_says_how_to_go_on(config, tmp_path):
    path, log = config(100_000), tmp_path / "run" / "metrics.jsonl"
    command = [sys.executable, "-m", "interlingua.cli.main", "train", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    assert process.returncode == 2, error
    step = json.loads((next((tmp_path / "run" / "checkpoints").iterdir()) / "state.json").read_text())["state"]["step"]
    assert error.splitlines()[-1] == (
        f"interlingua: stopped after step {step} of 100000, which is saved; go on with:"
        f" interlingua train {tmp_path}/run/config.toml"
    )
