"""docs/how-to/train-from-python.md: its code runs, on a tiny corpus."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from tests.conftest import pairs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "train-from-python.md"
QUICK = {
    '"output": "prepared",': '"output": "prepared", "processes": 1,',
    '"size": 8000': '"size": 60',
    "ems-small": "ems-tiny",
    '"max_steps": 2000,': '"max_steps": 3, "device": "cpu", "threads": 1, "precision": "fp32",',
}
"""Text of the page -> replacement that is fast enough for a test."""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, prepared):
    for library in ("datasets", "pandas", "polars"):
        pytest.importorskip(library)
    folder = tmp_path_factory.mktemp("own-pairs")
    rows = pairs("deu_Latn", 400, seed=0)
    code = f"german = {[a for a, _ in rows]!r}\nenglish = {[b for _, b in rows]!r}\n"
    (folder / "my_code.py").write_text(code, encoding="utf-8")
    text = PAGE.with_name("train.md").read_text(encoding="utf-8")
    config = re.search(r"^```toml\n(# train.toml\n.*?)^```", text, re.M | re.S)[1]
    config = config.replace('"prepared"', f'"{prepared}"').replace("[run]", "[run]\nthreads = 1")
    (folder / "train.toml").write_text(config, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def names(workplace):
    """The names that the code of the page sets."""
    text = PAGE.read_text(encoding="utf-8")
    for long, short in QUICK.items():
        assert long in text
        text = text.replace(long, short)
    found = {}
    with contextlib.chdir(workplace), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(workplace), *sys.path])
        patch.delitem(sys.modules, "my_code", raising=False)  # another guide's
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)):
            exec(compile(code, f"{PAGE.name}, block {number}", "exec"), found)
    return found


def test_pairs_of_each_kind_become_files(names, workplace):
    for kind in ("iterable", "dataset", "pandas", "polars"):
        assert (
            len((workplace / f"{kind}.de-en.tsv").read_text(encoding="utf-8").splitlines()) == 100
        )


def test_the_first_part_prints_what_its_comment_says(workplace):
    text = PAGE.read_text(encoding="utf-8")
    first = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
    with contextlib.chdir(workplace), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(first, PAGE.name, "exec"), {})
    assert f"# {out.getvalue()}" in first


def test_the_pairs_are_trained_on(names, workplace):
    assert names["prepared"].manifest.train > 200
    assert names["result"].step == 3
    assert (workplace / "runs" / "own-pairs" / "model").is_dir()


def test_the_own_objective_learns_and_is_saved(names, workplace):
    losses = names["losses"]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert set(names["output"].terms) == {"close", "spread"}
    assert float(sum(names["output"].terms.values())) == pytest.approx(losses[-1])
    saved = Encoder.load(workplace / "runs" / "own-objective")
    assert np.array_equal(saved.encode(["de1 de2"]), names["vectors"])
