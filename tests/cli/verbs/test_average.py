from __future__ import annotations

import pytest

from interlingua.encoder.encoder import Encoder
from tests.adapt.conftest import word_encoder


@pytest.fixture
def models(tmp_path, word_vocabulary):
    for seed, name in enumerate(("start", "trained")):
        word_encoder(word_vocabulary, seed).save(tmp_path / name)
    return tmp_path / "start", tmp_path / "trained"


def test_the_grid_is_printed_with_its_choice(done, tmp_path, models):
    dev, sts = tmp_path / "dev.de-en.tsv", tmp_path / "sts.en.dev.tsv"
    dev.write_text("".join(f"de{n} de{n + 1}\ten{n} en{n + 1}\n" for n in range(9)))
    sts.write_text("".join(f"{n / 2}\ten{n} en1\ten{2 * n} en3\n" for n in range(9)))
    said = done(
        "average",
        *models,
        f"-o {tmp_path}/out --pairs {dev} --sts {sts} --grid 0,0.5,1 --max-loss 50",
    )
    lines = said.out.splitlines()
    assert lines[:3] == ["share 0 measured", "share 0.5 measured", "share 1 measured"]
    assert lines[3].split() == [
        "share",
        "dev.de-en.tsv",
        "sts.en.dev.tsv",
        "mean",
        "P@1",
        "mean",
        "STS",
    ]
    rows = [line.split() for line in lines[4:7]]
    assert sum(row[0] == "*" for row in rows) == 1
    chosen = next(row[1:] for row in rows if row[0] == "*")
    assert float(chosen[-1]) == max(float(row[-1]) for row in rows)
    assert "lose at most 50 P@1 of share 1" in lines[7]
    assert lines[8].startswith(f"written: {tmp_path / 'out'} (shares {1 - float(chosen[0]):.3g}, ")


def test_given_weights_need_no_data(done, tmp_path, models):
    said = done("average", *models, f"-o {tmp_path}/out --weights 3,1")
    assert said.out == f"written: {tmp_path / 'out'} (shares 0.75, 0.25)\n"
    assert Encoder.load(tmp_path / "out").dim == 16


def test_weights_that_are_no_numbers_are_one_line(refused, tmp_path, models):
    error = refused("average", *models, f"-o {tmp_path}/out --weights half,half").err
    assert error.startswith("interlingua: --weights: ")


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ("--languages de --sts sts.tsv", "pairs"),
        ("--max-pairs 10 --weights 1,1", "pairs or sts"),
        ("--prompt 'query: '", "pairs or sts"),
        ("--max-loss 1 --pairs dev.de-en.tsv", "pairs and sts"),
    ],
)
def test_options_that_nothing_would_read_are_one_line(refused, tmp_path, models, options, needs):
    assert f"requires {needs}" in refused("average", *models, f"-o {tmp_path}/out", options).err
