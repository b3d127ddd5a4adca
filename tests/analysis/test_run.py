from __future__ import annotations

import logging

import numpy as np
import pytest

from interlingua.analysis.agnosticism import Agnosticism
from interlingua.analysis.record import read_analyses
from interlingua.analysis.run import DEFAULT, build_analyses, run_analyses, unwrap_model
from interlingua.analysis.word_order import WordOrder
from interlingua.config.registry import ANALYSES, resolve_name
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.errors import ConfigError, DataError, TaskError
from tests.analysis.conftest import Fixed, random_vectors


class Counting(Fixed):
    def __init__(self, vectors):
        super().__init__(vectors)
        self.asked = []

    def encode(self, texts, **how):
        self.asked += texts
        return np.stack([self.table.get(text, np.ones(self.dim)) for text in texts])


def test_names_and_options():
    assert [a.name for a in build_analyses()] == list(DEFAULT)
    panel, order = build_analyses(
        ["agnosticism", "word_order"], languages=["de", "fr"], settings=["agnosticism.k=3"]
    )
    assert (panel.languages, panel.k) == (("de", "fr"), 3)
    assert order == WordOrder()
    assert all(resolve_name(ANALYSES, name).name == name for name in ANALYSES)


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        (["agnostic"], [], "did you mean 'agnosticism'"),
        (["agnosticism"], ["agnosticism.m=3"], "--set agnosticism: unknown key 'm'"),
        (["agnosticism"], ["agnosticism.k=many"], "k: expected"),
        (["agnosticism"], ["word_order.k=1"], "analysis 'word_order'"),
        (["agnosticism"], ["k=1"], "expected task.option=value"),
        (["agnosticism"], ["run.threads=1"], "OMP_NUM_THREADS=1"),
    ],
)
def test_slips(names, settings, message):
    with pytest.raises(ConfigError, match=message):
        build_analyses(names, settings=settings)


def test_each_text_once_and_files(folder, tmp_path):
    encoder = Counting(random_vectors(3, 4, 5))
    found = run_analyses(
        encoder, [Agnosticism(k=2), Agnosticism(k=3), WordOrder()], folder, output=tmp_path
    )
    assert len(encoder.asked) == len(set(encoder.asked)) == 14
    assert [one.provenance["encoded_texts"] for one in found] == [12, 0, 2]
    assert {one.task for one in read_analyses([tmp_path])} == {
        "agnosticism_flores200_devtest",
        "word_order",
    }
    assert len(read_analyses([tmp_path])) == 3
    assert found[0].model == "Counting"


def test_a_prompt_is_before_every_text_and_in_the_record(folder, framed_encoder):
    (found,) = run_analyses(
        OwnEncoder(framed_encoder, name="m"), [WordOrder()], folder, prompt="query: "
    )
    assert found.provenance["prompt"] == "query: "
    assert found.provenance["model"]["overrides"] == ("prompt='query: '",)


def test_what_does_not_fit_is_left_out_or_refused(folder, caplog):
    encoder = Fixed(random_vectors(3, 4, 5))
    analyses = build_analyses(["agnosticism", "token_matching"])
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        found = run_analyses(encoder, analyses, folder, skip_unfit=True)
    assert [one.task for one in found] == ["agnosticism_flores200_devtest"]
    assert "Fixed: token_matching is left out" in caplog.text
    with pytest.raises(ConfigError, match="token_matching reads hidden states"):
        run_analyses(encoder, analyses, folder)


def test_nan_is_one_line(folder):
    vectors = random_vectors(3, 4, 5)
    vectors[1, 1, 1] = np.nan
    with pytest.raises(TaskError, match="NaN or infinity"):
        run_analyses(Fixed(vectors), [Agnosticism()], folder)


def test_dropout_is_off_meanwhile(folder, framed_encoder):
    framed_encoder.train()
    settings = build_analyses(["token_matching"])
    first, second = (run_analyses(framed_encoder, settings, folder)[0] for _ in range(2))
    assert framed_encoder.training
    assert first.measures == second.measures


def test_dropout_is_back_after_an_error(tmp_path, framed_encoder):
    framed_encoder.train()
    with pytest.raises(DataError, match="missing"):
        run_analyses(framed_encoder, build_analyses(["token_matching"]), tmp_path / "missing")
    assert framed_encoder.training


def test_the_model_behind(framed_encoder):
    assert unwrap_model(framed_encoder) is framed_encoder
    assert unwrap_model(OwnEncoder(framed_encoder, name="x")) is framed_encoder
    assert unwrap_model(Fixed(random_vectors(3, 4))) is None
