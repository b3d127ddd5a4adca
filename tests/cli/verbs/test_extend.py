from __future__ import annotations

import importlib
import re

import pytest

from interlingua.encoder.encoder import Encoder
from tests.adapt.invented import workplace


def test_the_table_shows_gain_and_forgetting(done, tmp_path):
    folder = workplace(tmp_path)
    command = (
        f"extend {folder}/model --pairs {folder}/pairs.eu-en.tsv --lang eu -o {folder}/out",
        "--epochs 1 --batch-size 16 --heldout 12 --threads 1 --device cpu --quiet",
        f"--check {folder}/check --sts {folder}/sts.en.dev.tsv --replay {folder}/replay/de.txt",
    )
    lines = done(*command).out.splitlines()
    assert re.match(
        r"vocabulary: 0\.\d+ characters per token, [\d.]+ times as many tokens as the pivot"
        r" language, 0\.00 %",
        lines[0],
    )
    assert "0 of 190 texts in other languages are tokenized differently" in lines[1]
    names = [
        "heldout: eus-eng",
        "check: deu-eng",
        "check: fra-eng",
        "mean of the other languages, P@1",
        "sts.en.dev.tsv",
    ]
    assert [line[: len(name)] for line, name in zip(lines[3:], names, strict=False)] == names
    means = [sum(float(line.split()[-3 + at]) for line in lines[4:6]) / 2 for at in (0, 1)]
    assert [float(part) for part in lines[6].split()[-3:-1]] == pytest.approx(means, abs=0.011)
    assert re.fullmatch(
        r"gain: -?[\d.]+ points of P@1 in eus_Latn; loss: -?[\d.]+ points on the mean of the 2"
        r" other languages",
        lines[8],
    )
    assert lines[9] == f"model: {folder / 'out' / 'model'}"
    assert Encoder.load(folder / "out" / "model").dim == 16
    assert done(*command).out.splitlines() == lines


@pytest.mark.parametrize(("flags", "shown"), [("", True), ("--quiet", False)])
def test_progress_is_shown_unless_quiet(done, tmp_path, monkeypatch, flags, shown):
    found = []
    module = importlib.import_module("interlingua.cli.verbs.extend")
    monkeypatch.setattr(module, "extension_table", lambda result: [])
    monkeypatch.setattr(module, "run_extend", lambda options, *, progress: found.append(progress))
    done(f"extend m --pairs x.tsv --lang eu -o {tmp_path}/out", flags)
    assert found == [shown]


def test_an_unknown_language_is_one_line(refused, tmp_path):
    assert (
        "klingonish" in refused(f"extend m --pairs x.tsv --lang klingonish -o {tmp_path}/out").err
    )
    assert not (tmp_path / "out").exists()
