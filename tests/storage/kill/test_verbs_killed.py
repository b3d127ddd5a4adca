"""Verbs with a workspace, killed by SIGKILL at a rename, and every damage of what they leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.errors import InterlinguaError
from interlingua.storage.workspace import RECORD
from tests.adapt.test_extend import done as done
from tests.adapt.test_extend import place as place
from tests.adapt.test_extend import run as run

ROOT = Path(__file__).resolve().parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.adapt.test_extend import run

left = int(sys.argv[3])
for name in ("rename", "replace"):
    def call(*arguments, real=getattr(os, name), **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    setattr(os, name, call)
run(Path(sys.argv[1]), sys.argv[2])
print(int(sys.argv[3]) - left)
"""


def killed(place, name, point):
    """Run extend in a process that dies at a rename; return its status and output."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([f"{ROOT}/src", str(ROOT)]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", KILLED, str(place), name, str(point)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return process.returncode, process.stdout


def test_extend_killed_at_renames_ends_with_the_same_model(done, place):
    status, count = killed(place, "counted", 10**6)
    assert status == 0
    points = sorted({1, 2, int(count) // 4, int(count) // 2, 3 * int(count) // 4, int(count)})
    for point in points:
        status, _ = killed(place, f"killed-{point}", point)
        assert status == -signal.SIGKILL
        again = run(place, f"killed-{point}")
        assert Encoder.load(again.model).digest() == Encoder.load(done.model).digest()
        assert again.after == done.after


@pytest.mark.parametrize("step", ["start", "corpus", "replay", "model"])
def test_extend_makes_good_every_damaged_step(done, place, step, caplog):
    record = json.loads((place / "out" / RECORD).read_text())
    name = min(record["steps"][step]["files"])
    path = place / "out" / step / name
    path.write_bytes(path.read_bytes()[:-1])
    again = run(place)
    assert name in caplog.text
    assert again == done
    assert Encoder.load(again.model).digest() == Encoder.load(done.model).digest()


def test_extend_refuses_a_damaged_record_in_one_line(done, place):
    path = place / "out" / RECORD
    content = path.read_bytes()
    for place_of_bit in range(0, len(content) - 1, 997):
        path.write_bytes(
            content[:place_of_bit]
            + bytes([content[place_of_bit] ^ 1])
            + content[place_of_bit + 1 :]
        )
        with pytest.raises(InterlinguaError, match=r"^[^\n]*workspace\.json[^\n]*$"):
            run(place)
    path.write_bytes(content)
    assert run(place) == done
