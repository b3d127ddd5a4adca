from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
import torch

from interlingua.training.machine import memory
from interlingua.training.machine.memory import (
    TORCH_VARIABLES,
    freed_memory_kept,
    use_expandable_segments,
)
from tests.training.runs import run_python

WORKER = """
import ctypes, resource
from interlingua.training.machine.memory import freed_memory_kept

library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]

def faults(mebibytes):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = library.malloc(mebibytes << 20)
    ctypes.memset(block, 1, mebibytes << 20)
    library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

default = faults(64)
try:
    with freed_memory_kept():
        kept, held = [faults(64) for _ in range(3)][-1], resident()
        raise OSError
except OSError:
    left = resident()
print(default, kept, held - left, faults(64), [faults(20) for _ in range(3)][-1])
"""


@pytest.mark.skipif(memory._glibc() is None, reason="needs glibc")
def test_freed_memory_is_used_again_until_it_is_given_back():
    default, kept, released, after, small = map(int, run_python("-c", WORKER).stdout.split())
    assert min(default, after) > 10 * kept  # pages of 64 MiB, each to be requested
    assert released > 60 << 20  # though an error was the end
    assert (
        default > 10 * small
    )  # which glibc would have kept by itself, once a block as large was freed


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("asked for a library"))
    with freed_memory_kept():
        pass


SETTINGS = """
import torch
from interlingua.training.machine.memory import use_expandable_segments

use_expandable_segments()
print(torch._C._accelerator_getAllocatorSettings())
"""


@pytest.mark.parametrize("name", TORCH_VARIABLES)
def test_the_users_own_settings_of_torchs_allocator_stay(monkeypatch, name):
    environ = {name: "max_split_size_mb:100"}
    monkeypatch.setattr(os, "environ", environ)
    use_expandable_segments()
    assert environ == {name: "max_split_size_mb:100"}


@pytest.mark.skipif(
    not hasattr(torch._C, "_accelerator_getAllocatorSettings"), reason="torch before 2.9"
)
def test_torch_reads_the_settings_after_it_was_imported():
    environ = {name: value for name, value in os.environ.items() if name not in TORCH_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", SETTINGS], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "expandable_segments:True"
