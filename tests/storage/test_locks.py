from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.storage import locks

HOLDER = """
import sys, time
from pathlib import Path
from interlingua.storage.locks import exclusive
with exclusive(Path(sys.argv[1]), remedy="go", shared=len(sys.argv) > 2):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Start another process that holds the lock of a folder."""
    started = []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_second_process_is_refused_and_the_first_is_named(tmp_path, holder):
    other = holder()
    message = rf"{other.pid} on {socket.gethostname()} since .*choose x"
    with pytest.raises(ConfigError, match=message), locks.exclusive(tmp_path, remedy="choose x"):
        pass
    other.communicate(b"")
    with locks.exclusive(tmp_path, remedy="choose x"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_killed_holder_locks_no_longer(tmp_path, holder):
    other = holder()
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert [path.name for path in tmp_path.iterdir()] == [locks.LOCK_FILE]
    with locks.exclusive(tmp_path, remedy="choose x"):
        assert f"process {os.getpid()} " in (tmp_path / locks.LOCK_FILE).read_text()
    assert list(tmp_path.iterdir()) == []


def test_the_same_process_is_refused_too(tmp_path):
    in_use = pytest.raises(ConfigError, match=f"process {os.getpid()}")
    with locks.exclusive(tmp_path, remedy="x"), in_use, locks.exclusive(tmp_path, remedy="x"):
        pass
    with locks.exclusive(tmp_path, remedy="x"):
        pass


def test_shared_locks_keep_out_exclusive_ones_alone(tmp_path, holder):
    other = holder("shared")
    with locks.exclusive(tmp_path, remedy="x", shared=True):
        pass
    with (
        pytest.raises(ConfigError, match=f"process {other.pid} "),
        locks.exclusive(tmp_path, remedy="x"),
    ):
        pass
    other.communicate(b"")
    with locks.exclusive(tmp_path, remedy="x"), pytest.raises(ConfigError):  # noqa: SIM117
        with locks.exclusive(tmp_path, remedy="x", shared=True):
            pass
    assert list(tmp_path.iterdir()) == []


def test_one_that_waits_gets_the_lock_later(tmp_path):
    order = []

    def second():
        with locks.exclusive(tmp_path, remedy="x", wait=True):
            order.append("second")

    with locks.exclusive(tmp_path, remedy="x"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_a_child_by_fork_does_not_keep_the_lock(tmp_path):
    in_child = "import os; os.fork() or (print(os.getpid(), flush=True), time.sleep(60))"
    code = HOLDER.replace("    print(", f"    {in_child}\n    print(")
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = process.stdout.readline(), process.stdout.readline()
    child = int("".join(lines).replace("held", ""))
    process.kill()
    process.wait()
    try:
        with locks.exclusive(tmp_path, remedy="x"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named_once(tmp_path, monkeypatch, caplog, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING), locks.exclusive(tmp_path, remedy="x"):
        pass
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: the file system supports no locks; check that no other run uses this folder"
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_its_place_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("text")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / locks.LOCK_FILE).symlink_to(precious)
    with (
        pytest.raises(DataError, match="cannot be written"),
        locks.exclusive(tmp_path / "w", remedy="x"),
    ):
        pass
    assert precious.read_text() == "text"


@pytest.mark.parametrize("text", ["important", "pro\n", "p"])
def test_a_file_that_is_no_lock_is_kept(tmp_path, text):
    path = tmp_path / locks.LOCK_FILE
    path.write_text(text)
    is_cut = text == "p"  # what a full disk leaves of ours
    if is_cut:
        with locks.exclusive(tmp_path, remedy="x"):
            pass
        return
    with (
        pytest.raises(DataError, match="name of a lock"),
        locks.exclusive(tmp_path, remedy="x"),
    ):
        pass
    assert path.read_text() == text
