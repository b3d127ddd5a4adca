"""Verbs with a workspace, killed by SIGKILL at a rename, and every damage of what they leave."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.errors import InterlinguaError
from interlingua.storage.workspace import WORKSPACE_RECORD
from tests.adapt.test_extend import done as done
from tests.adapt.test_extend import place as place
from tests.adapt.test_extend import run as run
from tests.golden.summaries import differences, summary
from tests.storage.kill import verbs

LEFT_OUT = ("passages.lance", ".lock", "checkpoints/", "journal", "metrics.jsonl", "cache/", "toml")
"""Files of other tools, and those that hold how a run went rather than what came of it."""
RECORD_OR_JOURNAL = re.compile(rb'"format": "interlingua-|^[0-9a-f]{8} [\[{]')
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
    record = json.loads((place / "out" / WORKSPACE_RECORD).read_text())
    name = min(record["steps"][step]["files"])
    path = place / "out" / step / name
    path.write_bytes(path.read_bytes()[:-1])
    again = run(place)
    assert name in caplog.text
    assert again == done
    assert Encoder.load(again.model).digest() == Encoder.load(done.model).digest()


def test_extend_refuses_a_damaged_record_in_one_line(done, place):
    path = place / "out" / WORKSPACE_RECORD
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


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with inputs, a corpus and a model, read by all verbs."""
    folder = tmp_path_factory.mktemp("world")
    status, _ = verbs.run(lambda: verbs.make_world(folder) or 0, folder / "log")
    assert status == 0, (folder / "log").read_text()
    return folder


class Verb:
    """A verb that writes into one folder again and again.

    Attributes:
        whole: summary of what an uninterrupted run writes.
        calls: the number of places where a run can be killed.
    """

    def __init__(self, verb, world, folder):
        self.out = folder / "out"
        self.log = folder / "log"
        self.verb, self.world = verb, world
        status, self.calls = self.run()
        assert status == 0, self.log.read_text()
        self.whole = self.result()

    def run(self, kill_at=0):
        command = [*verbs.command_of(self.verb, self.world, self.out), "--quiet"]
        if self.verb.startswith("index"):
            return verbs.run_alone(command, self.log, kill_at=kill_at)
        return verbs.run(lambda: verbs.call(command), self.log, kill_at=kill_at)

    def result(self):
        """Return the summaries of all files except those for resuming."""
        found = {}
        for path in sorted(self.out.rglob("*")):
            name = path.relative_to(self.out).as_posix()
            if path.is_file() and not any(part in name for part in LEFT_OUT):
                content = summary(path, self.out)
                found[re.sub(r"[0-9a-f]{12,}", "DIGEST", name)] = without_provenance(content)
        return found

    def ends_well(self, *, or_refuses=False):
        """Check that a run ends with the whole result, or with one line that is no traceback."""
        status, _ = self.run()
        log = self.log.read_text()
        assert "Traceback" not in log, log
        if or_refuses and status == 2:
            errors = [line for line in log.splitlines() if line.startswith("interlingua: ")]
            assert len(errors) == 1, log
            # A message that has the text of another one says each thing once.
            assert errors[0].count("is damaged") < 2, log
            return
        assert status == 0, log
        assert differences(self.result(), self.whole, 1e-6) == []


def without_provenance(value):
    """Remove the properties that describe how the result was computed, such as known vectors."""
    if isinstance(value, dict):
        return {key: without_provenance(item) for key, item in value.items() if key != "provenance"}
    return value


@pytest.fixture(params=verbs.VERBS)
def verb(request, world, tmp_path):
    return Verb(request.param, world, tmp_path)


def test_a_verb_that_is_killed_ends_with_the_same_result(verb):
    for point in sorted({1, verb.calls // 3, 2 * verb.calls // 3, verb.calls} - {0}):
        shutil.rmtree(verb.out)
        # A later run may need fewer calls than the first one, and end before it is killed.
        assert verb.run(point)[0] in (-signal.SIGKILL, 0)
        # A verb that does not resume refuses to replace what the killed run has finished.
        verb.ends_well(or_refuses=point == verb.calls)


def test_a_damaged_record_is_made_good_or_refused_in_one_line(verb, tmp_path):
    """Damage records of a killed run if it leaves some, else of a complete one."""
    shutil.copytree(verb.out, tmp_path / "whole")
    shutil.rmtree(verb.out)
    verb.run(max(1, 2 * verb.calls // 3))
    if not records_in(verb.out):
        shutil.rmtree(verb.out)
        shutil.copytree(tmp_path / "whole", verb.out)
    shutil.copytree(verb.out, tmp_path / "before")
    for path in records_in(verb.out):
        for harm in (cut, flip, age):
            harm(path)
            verb.ends_well(or_refuses=True)
            shutil.rmtree(verb.out)
            shutil.copytree(tmp_path / "before", verb.out)


def records_in(folder):
    """Return all records and journals below a folder."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and RECORD_OR_JOURNAL.search(path.read_bytes()[:1_000_000])
    ]


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def age(path):
    """Set another version. A journal has none, and gets another first line."""
    content = path.read_bytes()
    changed = re.sub(rb'("format": "interlingua-[a-z-]+-)\d+"', rb'\g<1>999"', content)
    path.write_bytes(changed if changed != content else b"0" + content[1:])
