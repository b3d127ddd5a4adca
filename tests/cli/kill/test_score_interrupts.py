"""An interrupted ``score``."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys

from tests.cli.verbs.test_score import workplace as workplace


def test_ctrl_c_and_a_reader_that_has_seen_enough(workplace):
    slow = (
        "import time, invented_words\ndef embed(texts):\n    time.sleep(1)\n    return"
        " invented_words.embed(texts)\n"
    )
    (workplace / "slow_words.py").write_text(slow, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "interlingua.cli.main",
        "score",
        "slow_words:embed",
        "noisy.de-en.tsv",
        "--backend",
        "function",
        "--window",
        "4",
    ]
    environment = {**os.environ, "PYTHONPATH": str(workplace), "PYTHONUNBUFFERED": "1"}
    # a process that was started in the background passes on that SIGINT is ignored
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {
        "env": environment,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "preexec_fn": heeding,
    }
    with subprocess.Popen(command, **pipes) as run:
        first = run.stdout.readline()
        run.send_signal(signal.SIGINT)
        out, error = run.communicate(timeout=60)
    assert run.returncode == 2
    assert error.startswith("interlingua: stopped after ")
    assert all(len(line.split("\t")) == 3 for line in (first + out).splitlines())
    with subprocess.Popen(command, **pipes) as run:
        run.stdout.readline()
        run.stdout.close()
        assert run.wait(timeout=60) == 0
        assert run.stderr.read() == ""
