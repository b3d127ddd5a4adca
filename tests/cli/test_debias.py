from __future__ import annotations

import numpy as np
import pytest

from interlingua.cli import main
from interlingua.encoder.encoder import Encoder
from tests.analysis.test_debias import model, texts  # noqa: F401
from tests.encoder.conftest import encoder, plain_vocabulary  # noqa: F401


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main.main(["debias", *map(str, arguments)])
    return stop.value.code or 0, capsys.readouterr()


def test_table_and_model_are_written(capsys, model, texts, tmp_path):  # noqa: F811
    code, printed = run(capsys, model, texts, "-o", tmp_path / "out", "--sentences", 40, "--quiet")
    assert code == 0, printed.err
    assert "translations found, mixed pool" in printed.out
    assert "before" in printed.out
    assert Encoder.load(tmp_path / "out").post_pooling.kinds == ("Normalize", "Dense")


def test_stored_vectors_are_mapped(capsys, tmp_path):
    rng = np.random.default_rng(0)
    np.save(
        tmp_path / "index.npy",
        rng.normal(size=(60, 4)).astype("f4") + np.repeat(np.eye(2, 4), 30, axis=0),
    )
    (tmp_path / "labels.txt").write_text("de\n" * 30 + "en\n" * 30)
    options = [
        "--vectors",
        tmp_path / "index.npy",
        "--labels",
        tmp_path / "labels.txt",
        "-o",
        tmp_path / "out",
    ]
    code, printed = run(capsys, *options, "--quiet")
    assert code == 0, printed.err
    assert "1 direction removed" in printed.out
    assert "retrieval was not measured" in printed.out
    assert np.load(tmp_path / "out" / "vectors.npy").shape == (60, 4)
    code, printed = run(
        capsys, "--vectors", tmp_path / "index.npy", "--map", tmp_path / "out", "-o", tmp_path / "b"
    )
    assert code == 0, printed.err
    code, printed = run(capsys, *options[:-1], tmp_path / "d", "--map", tmp_path / "out")
    assert (code, printed.err.count("\n")) == (2, 1)
    assert "--labels" in printed.err
    code, printed = run(capsys, *options[:-1], tmp_path / "c", "--method", "center", "--quiet")
    assert printed.out.endswith("retrieval was not measured\n")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["model"], "texts"),
        ([], "texts"),
        (["m", "t", "--labels", "x"], "--vectors"),
        (["m", "--vectors", "x"], "--vectors"),
        (["m", "t", "--method", "magic"], "method"),
        (["m", "t", "--set", "stsb.split=dev"], "BACKEND.OPTION"),
    ],
)
def test_users_errors_are_one_line(capsys, arguments, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed = run(capsys, *arguments)
    assert code == 2
    assert printed.err.count("\n") == 1
    assert match in printed.err
