from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

from interlingua.errors import DataError
from interlingua.storage import files, temporary

WRITER = """
import sys
from interlingua.storage.files import atomic_directory, atomic_write
with atomic_directory(sys.argv[1] + "/big") as folder, atomic_write(sys.argv[1] + "/a.txt") as file:
    print("open", flush=True)
    sys.stdin.read()
    (folder / "whole").write_text("x")
    file.write("whole")
"""


def writer(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"open\n"
    return process


def killed(folder):
    """Return the files of a process that was killed while it wrote."""
    process = writer(folder)
    process.kill()
    process.communicate()


@pytest.fixture
def no_process_seen(monkeypatch):
    """Processes invisible like in another container: the writer has no number here."""
    monkeypatch.setattr(temporary, "is_alive", lambda pid: False)


def test_another_containers_living_files_stay(tmp_path, no_process_seen):
    process = writer(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert len(before) == 2
    temporary.sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    process.communicate(b"")
    assert process.returncode == 0
    assert (tmp_path / "a.txt").read_text() == "whole"
    assert (tmp_path / "big" / "whole").read_text() == "x"


def test_files_of_a_killed_process_go(tmp_path):
    killed(tmp_path)
    temporary.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_at_the_next_start(tmp_path):
    killed(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert [name.split(".")[1] for name in left] == ["a", "big"]
    (tmp_path / left[1].replace("big", "other")).mkdir()
    foreign = tmp_path / ".big.00000000-1.abcdefgh.tmp"  # of another machine
    living = tmp_path / left[1].replace(left[1].split("-")[1].split(".")[0], str(os.getppid()))
    foreign.mkdir()
    living.mkdir()
    with files.atomic_directory(tmp_path / "big"), files.atomic_write(tmp_path / "a.txt"):
        temporary.sweep(tmp_path)  # what this process is writing stays
    with files.atomic_directory(tmp_path / "big", overwrite=True):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"big", "a.txt", foreign.name, living.name}


def test_only_the_leftovers_of_a_name(tmp_path):
    killed(tmp_path)
    with files.atomic_write(tmp_path / "a.txt"):
        pass
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 2
    assert names[0].startswith(".big.")


def test_a_folder_that_was_written_into_another_one_goes_with_it(tmp_path):
    killed(tmp_path)
    [outer] = tmp_path.glob(".big.*")
    inner = tmp_path / f".{outer.name}{outer.name.removeprefix('.big')}"
    inner.mkdir()
    inner.with_suffix(".old").mkdir()
    with files.atomic_directory(tmp_path / "big"):
        pass
    assert sorted(path.name[:4] for path in tmp_path.iterdir()) == [".a.t", "big"]


def test_without_locks_a_leftover_goes_after_a_day(tmp_path, no_process_seen, monkeypatch):
    killed(tmp_path)

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    temporary.sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    long_ago = time.time() - temporary.A_DAY - 60
    for path in tmp_path.iterdir():
        os.utime(path, (long_ago, long_ago))
    temporary.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_swept_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    lock, calls = fcntl.flock, []

    def late(handle, kind):
        if not calls:
            for path in tmp_path.iterdir():
                path.unlink()
        calls.append(handle)
        lock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    with files.atomic_write(tmp_path / "a.txt") as file:
        file.write("x")
    assert (tmp_path / "a.txt").read_text() == "x"
    assert len(calls) == 2


def folders(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
    return tmp_path / "new", tmp_path / "old"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_takes_the_place_of_another(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(temporary, "_renameat2", lambda: None)
    new, old = folders(tmp_path)
    temporary.replace_directory(new, old)
    assert (old / "name").read_text() == "new"
    assert list(tmp_path.iterdir()) == [old]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="renameat2 is Linux's")
def test_names_are_exchanged_in_one_step(tmp_path):
    new, old = folders(tmp_path)
    assert temporary.exchange(new, old)
    assert ((old / "name").read_text(), (new / "name").read_text()) == ("new", "old")
    with pytest.raises(FileNotFoundError):
        temporary.exchange(tmp_path / "none", old)


KILLED = """
import os, signal, sys
from pathlib import Path
from interlingua.storage import temporary
from interlingua.storage.files import atomic_directory

rename, moment, calls = os.rename, int(sys.argv[2]), []

def dying(*arguments, **options):
    if len(calls) == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    calls.append(1)
    return rename(*arguments, **options)

os.rename = dying
rmtree = temporary.shutil.rmtree
temporary.shutil.rmtree = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[3] == "aside":
    temporary._renameat2 = lambda: None
with atomic_directory(Path(sys.argv[1]) / "corpus", overwrite=True) as folder:
    (folder / "name").write_text("new")
"""


@pytest.mark.parametrize("way", ["exchange", "aside"])
@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_kill_while_a_folder_is_replaced_loses_none(tmp_path, way, moment):
    """Kill before and after each rename. A whole folder exists at the latest in the next run."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "name").write_text("old")
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(moment), way]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    if way == "exchange":
        assert (tmp_path / "corpus" / "name").read_text() == "new"
    with (
        pytest.raises(DataError, match="already exists"),
        files.atomic_directory(tmp_path / "corpus"),
    ):
        pass
    assert (tmp_path / "corpus" / "name").read_text() in ("old", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
