"""``extend`` that is killed and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import torch

from interlingua.encoder.encoder import Encoder
from interlingua.storage.files import sha256_tree
from tests.adapt.invented import write_lines
from tests.adapt.test_extend import done as done
from tests.adapt.test_extend import place as place
from tests.adapt.test_extend import run as run


def test_a_run_that_was_killed_ends_with_the_same_model(done, place):
    script = write_lines(
        place / "killed.py",
        [
            "from pathlib import Path",
            "from tests.adapt.test_extend import run",
            f"run(Path({str(place)!r}), 'killed')",
        ],
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    threads = str(torch.get_num_threads())  # as here, where another test may have changed them
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([f"{root}/src", root]),
        "OMP_NUM_THREADS": threads,
    }
    process = subprocess.Popen(
        [sys.executable, str(script)], env=environment, stderr=subprocess.DEVNULL
    )
    checkpoints = place / "killed" / "run" / "checkpoints"
    while process.poll() is None and not any(checkpoints.glob("step-*")):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    again = run(place, "killed")
    assert Encoder.load(again.model).digest() == Encoder.load(done.model).digest()
    assert sha256_tree(place / "killed" / "corpus" / "train") == sha256_tree(
        place / "out" / "corpus" / "train"
    )
