"""A cluster of two processes on this machine, and encoders that die in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import DataError, MissingExtraError
from tests.mining.invented import embed


@contextlib.contextmanager
def two_workers():
    """Start Ray with two processes. ``connected("auto")`` finds it."""
    ray = pytest.importorskip("ray")
    # as quick as this process; Ray's own would give way to everything else on a busy machine
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=100 * 2**20,
    )
    try:
        yield
    finally:
        ray.shutdown()


def square_or_fail(number, other=0):
    if number == 13:
        raise DataError("thirteen", path="numbers.txt", line=13)
    if number == 14:
        raise MissingExtraError("something", "extra")
    if number == 15:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 16:
        raise KeyError("a bug")
    import torch

    return number * number + other, torch.get_num_threads()


def embed_and_die(texts, folder, word, **options):
    """Kill the process of the first task with a word in its texts.

    All leave their number in the folder.
    """
    Path(folder, f"{os.getpid()}.pid").touch()
    died = Path(folder, "died")
    if not died.exists() and any(word in text.split() for text in texts):
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return embed(texts, **options)


def embed_or_die(texts, folder, word, out=None, report=None, show_progress_bar=None):
    """Call the same function like an encoder: to a file, or in memory."""
    vectors = embed_and_die(list(texts), folder, word)
    report.texts += len(vectors)
    if out is not None:
        np.save(out, vectors)
    return vectors


def kill_one(folder):
    """Kill one of the processes that have embedded."""
    for path in sorted(Path(folder).glob("*.pid")):
        with contextlib.suppress(OSError):
            if b"ray::" in Path("/proc", path.stem, "cmdline").read_bytes():
                os.kill(int(path.stem), signal.SIGKILL)
                return path.stem
    return None
