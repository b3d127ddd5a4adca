from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from tests.analysis.debiasing.test_debias import model, texts  # noqa: F401
from tests.encoder.conftest import encoder, plain_vocabulary  # noqa: F401


def test_table_and_model_are_written(done, model, texts, tmp_path):  # noqa: F811
    printed = done(f"debias {model} {texts} -o {tmp_path}/out --sentences 40 --quiet")
    assert "translations found, mixed pool" in printed.out
    assert "before" in printed.out
    assert Encoder.load(tmp_path / "out").post_pooling.kinds == ("Normalize", "Dense")


def test_stored_vectors_are_mapped(refused, done, tmp_path):
    rng = np.random.default_rng(0)
    np.save(
        tmp_path / "index.npy",
        rng.normal(size=(60, 4)).astype("f4") + np.repeat(np.eye(2, 4), 30, axis=0),
    )
    (tmp_path / "labels.txt").write_text("de\n" * 30 + "en\n" * 30)
    options = f"--vectors {tmp_path}/index.npy --labels {tmp_path}/labels.txt"
    printed = done("debias", options, f"-o {tmp_path}/out --quiet")
    assert "1 direction removed" in printed.out
    assert "retrieval was not measured" in printed.out
    assert np.load(tmp_path / "out" / "vectors.npy").shape == (60, 4)
    done(f"debias --vectors {tmp_path}/index.npy --map {tmp_path}/out -o {tmp_path}/b")
    printed = refused("debias", options, f"-o {tmp_path}/d --map {tmp_path}/out")
    assert "--labels" in printed.err
    printed = done("debias", options, f"-o {tmp_path}/c --method center --quiet")
    assert printed.out.endswith("retrieval was not measured\n")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ("model", "texts"),
        ("", "texts"),
        ("m t --labels x", "--vectors"),
        ("m --vectors x", "--vectors"),
        ("m t --method magic", "method"),
        ("m t --set stsb.split=dev", "BACKEND.OPTION"),
        ("m t --set run.threads=1", "OMP_NUM_THREADS=1"),
    ],
)
def test_users_errors_are_one_line(refused, arguments, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    assert match in refused("debias", arguments).err
