from __future__ import annotations

import subprocess
import sys

import pytest

from interlingua.train import memory
from interlingua.train.memory import give_back_memory, keep_freed_memory

WORKER = """
import resource, torch
from interlingua.train.memory import give_back_memory, keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(16 << 20).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

default = faults()
keep_freed_memory()
kept, held = [faults() for _ in range(40)][-1], resident()
give_back_memory()
left = resident()
print(default, kept, held - left, faults())
"""


@pytest.mark.skipif(memory._glibc() is None, reason="needs glibc")
def test_freed_memory_is_used_again_until_it_is_given_back():
    done = subprocess.run([sys.executable, "-c", WORKER], check=True, capture_output=True, text=True, timeout=120)
    default, kept, released, after = map(int, done.stdout.split())
    assert min(default, after) > 10 * kept  # pages of 64 MiB, each to be asked for
    assert released > 60 << 20


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert memory._glibc() is None
    keep_freed_memory()
    give_back_memory()
