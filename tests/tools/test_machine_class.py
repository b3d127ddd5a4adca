"""The class of a machine by its processor's maker and the kernel that it runs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from interlingua.kernels import KERNEL_VARIANTS

ROOT = Path(__file__).resolve().parents[2]
INTEL = "processor : 0\nvendor_id\t: GenuineIntel\nflags : fpu\n\nprocessor : 1\n"
AMD = INTEL.replace("GenuineIntel", "AuthenticAMD")
ARM = "processor : 0\nFeatures : fp asimd\nCPU implementer : 0x41\n"


@pytest.fixture
def machine_class(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    # Their names are common, so they are not to stay.
    for name in ("machine_class", "train", "knn"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    return importlib.import_module("machine_class")


@pytest.mark.parametrize(
    ("variant", "cpuinfo", "expected"),
    [
        ("amx", INTEL, "amx"),
        ("avx512", AMD, "zen"),
        # a processor with the same instructions, which does products of bfloats more slowly
        ("avx512", INTEL, "other"),
        ("avx512", "", "other"),
        ("avx512vnni", INTEL, "other"),
        ("avxvnni", INTEL, "avx2"),
        ("avx2", AMD, "avx2"),
        ("i8mm", ARM, "other"),
        (None, AMD, "other"),
    ],
)
def test_class_goes_by_vendor_and_variant(machine_class, variant, cpuinfo, expected):
    assert variant is None or variant in KERNEL_VARIANTS
    assert machine_class.class_of(variant, machine_class.vendor_of(cpuinfo)) == expected


def test_this_machine_has_a_class(machine_class, monkeypatch):
    classes = ("amx", "zen", "avx2", "other")
    assert machine_class.machine_class() in classes
    monkeypatch.setattr("interlingua.kernels.variant", lambda name: None)
    assert machine_class.machine_class() == "other"


def test_training_has_targets_of_its_own_on_tiles(machine_class):
    train = importlib.import_module("train")
    targets = {}
    for machine in ("amx", "zen"):
        for slower, faster, of, target in train.targets_of(machine):
            targets[machine, slower, faster, of] = target
    changed = ["st", "st bf16", "st bf16 grouped"]
    on_tiles = [targets["amx", name, "infonce", "time"] for name in changed]
    assert on_tiles == [5.9, 3.9, 5.0]
    elsewhere = [targets["zen", name, "infonce", "time"] for name in changed]
    assert elsewhere == [5.5, 2.5, 2.5]
    # what has no target of its own there
    assert targets["amx", "st", "infonce", "memory"] == targets["zen", "st", "infonce", "memory"]


def test_a_named_variant_of_search_is_that_one_or_not_here(machine_class, monkeypatch):
    knn = importlib.import_module("knn")
    assert knn.TARGETS["compiled amx", "compiled avx512"] == 3
    assert knn.kernels_of("compiled amx") == {"INTERLINGUA_KERNELS": "amx"}
    assert knn.kernels_of("compiled") == {}
    assert knn.kernels_of("torch") == {"INTERLINGUA_KERNELS": "0"}
    monkeypatch.setattr("interlingua.kernels.variant", lambda name: None)
    # no options: nothing is searched
    assert knn.one("compiled amx", None) is None
