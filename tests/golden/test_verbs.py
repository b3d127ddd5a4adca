"""Files that every verb writes on a small world. A change of the code must not change them by
accident.

``verbs.json`` holds a summary of each file; UPDATE_GOLDEN=1 writes it anew. ``--help`` is frozen in
docs/reference.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from pathlib import Path

import pytest
import torch

from interlingua import kernels
from interlingua.cli.main import VERBS, main
from tests.golden.summaries import differences, same, summary
from tests.golden.world import NOT_RUN, steps, write_inputs

FROZEN = Path(__file__).with_name("verbs.json")
TOLERANCE = 2e-3
"""Thirty steps of training round otherwise on another processor; no change of a method stays below
this."""
MODEL_DIGEST = re.compile(r"/[0-9a-f]{12}(?=[-/])")
PRINTED = ("compare", "look", "search")
"""Verbs that have what they print as their result."""
LEFT_OUT = ("passages.lance", "index/scan/", "events.out", ".lock", "checkpoints/", "fixed.bin")
"""Files of which the names or the content are another tool's, or that a resume test covers."""
BFLOAT16_PROBES = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The summaries of the files that each step has written."""
    folder = tmp_path_factory.mktemp("world")
    write_inputs(folder)
    found: dict[str, dict[str, object]] = {}
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("INTERLINGUA_KERNELS", "0")
        kernels.find_library.cache_clear()  # other tests may have found some
        patch.setenv("INTERLINGUA_DATA", str(folder / "nothing"))
        for probe in BFLOAT16_PROBES:  # precision = "auto" would differ between machines
            patch.setattr(torch.cpu, probe, lambda: False)
        torch.set_num_threads(1)
        for name, command in steps().items():
            before = set(folder.rglob("*"))
            out = io.StringIO()
            with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stop:
                main(command if command[0] == "export" else [*command, "--quiet"])
            assert not stop.value.code, f"{name} ended with {stop.value.code}"
            new = sorted(path for path in set(folder.rglob("*")) - before if path.is_file())
            kept = [path for path in new if not any(part in str(path) for part in LEFT_OUT)]
            found[name] = {
                _steady_name(path.relative_to(folder)): summary(path, folder) for path in kept
            }
            if command[0] in PRINTED:
                found[name]["standard output"] = [
                    line.rstrip() for line in out.getvalue().splitlines()
                ]
    torch.set_num_threads(threads)
    kernels.find_library.cache_clear()  # none was found without kernels
    if os.environ.get("UPDATE_GOLDEN"):
        FROZEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found


def _steady_name(path: Path) -> str:
    """Replace the folder with the model's digest in the name of results."""
    return MODEL_DIGEST.sub("/MODEL", str(path))


def test_every_verb_has_a_step_or_a_reason(written):
    assert {command[0] for command in steps().values()} | NOT_RUN.keys() == set(VERBS)
    assert [name for name, files in written.items() if not files] == []


@pytest.mark.parametrize("name", steps())
def test_a_verb_writes_what_it_wrote(written, name):
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    found = json.loads(json.dumps(written[name]))
    assert differences(found, frozen[name], TOLERANCE) == []


@pytest.mark.parametrize(
    ("found", "frozen", "equal"),
    [
        ({"a": 1.0001}, {"a": 1.0}, True),
        ({"a": 1.01}, {"a": 1.0}, False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1, "b": 1}, {"a": 1}, False),
        (["x 1.0001 y"], ["x 1.0 y"], True),
        (["x 1.1 y"], ["x 1.0 y"], False),
        (["x 1.0 z"], ["x 1.0 y"], False),
        ([1], [1, 2], False),
    ],
)
def test_summaries_differ_beyond_the_tolerance(found, frozen, equal):
    assert same(found, frozen, TOLERANCE) is equal
    assert (differences(found, frozen, TOLERANCE) == []) is equal
