"""Adding an invented language to a tiny model: what is written, measured, kept, and gone on with
after a kill."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil

import numpy as np
import pytest

import interlingua
from interlingua.adapt import extend as module
from interlingua.adapt.development import DevelopmentScores
from interlingua.adapt.extend import ExtendResult, VocabularyReport
from interlingua.adapt.settings import ExtendSettings
from interlingua.adapt.vocabulary_growth import Fragmentation
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError, InterlinguaError
from interlingua.storage.formats import EXTEND
from interlingua.storage.locks import exclusive
from interlingua.storage.record import read_record, write_record
from interlingua.storage.workspace import WORKSPACE_RECORD
from interlingua.training.config import load_train_config
from interlingua.verbs.extend import run_extend
from tests.adapt.invented import sentences, workplace, write_lines

QUICK = {"epochs": 1.0, "batch_size": 16, "heldout": 12}


def extend(*places, **options):
    return run_extend(ExtendSettings(*places, **options), progress=False)


def run(folder, name="out", **changes):
    options = {
        "check": [folder / "check"],
        "sts": [folder / "sts.en.dev.tsv"],
        "replay": [folder / "replay" / "de.txt"],
    }
    return extend(
        folder / "model",
        folder / "pairs.eu-en.tsv",
        "eu",
        folder / name,
        **(QUICK | options | changes),
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return workplace(tmp_path_factory.mktemp("extend"))


@pytest.fixture(scope="module")
def done(place):
    return run(place)


def test_from_python_it_shows_no_progress(tmp_path, place, monkeypatch):
    shown = []
    monkeypatch.setattr(module.Extension, "run", lambda self: shown.append(self.progress))
    interlingua.extend(place / "model", place / "pairs.eu-en.tsv", "eu", tmp_path / "out")
    assert shown == [False]


def test_the_vocabulary_grows_where_text_falls_apart(done):
    report = done.vocabulary
    assert report.premium > 3
    assert report.before.characters_per_token < 1.2
    assert report.pieces > 10
    assert report.after.characters_per_token > 3
    assert report.changed_texts == 0
    assert report.kept_texts == 160 + 30


def test_text_of_other_languages_begins_as_it_was(done, place):
    before, start = Encoder.load(place / "model"), Encoder.load(place / "out" / "start")
    texts = [english for _, english in sentences(40, seed=9)]
    assert np.array_equal(start.encode(texts), before.encode(texts))


def test_before_and_after_are_measured_on_all_sets(done, place):
    assert list(done.before.retrieval) == ["heldout: eus-eng", "check: deu-eng", "check: fra-eng"]
    assert done.before.retrieval.keys() == done.after.retrieval.keys()
    assert done.own == ("heldout: eus-eng",)
    assert list(done.after.similarity) == ["sts.en.dev.tsv"]
    rows = (place / "out" / "corpus" / "heldout" / "eus-eng.tsv").read_text().splitlines()
    sources, targets = zip(*(row.split("\t") for row in rows), strict=True)
    encoder = interlingua.load(done.model)
    cosines = encoder.encode(list(sources)) @ encoder.encode(list(targets)).T
    right = (cosines.argmax(axis=0) == np.arange(12)).mean() + (
        cosines.argmax(axis=1) == np.arange(12)
    ).mean()
    assert done.after.retrieval["heldout: eus-eng"] == pytest.approx(50 * right)


def test_the_model_is_the_run_s_last_one(done, place):
    assert done.model == place / "out" / "model"
    assert (
        Encoder.load(done.model).digest() == Encoder.load(place / "out" / "run" / "model").digest()
    )
    config = load_train_config(place / "out" / "run" / "config.toml")
    assert config.method.options.replay_weight == 1.0
    assert config.data.monolingual.paths == (place / "out" / "replay" / "deu_Latn.txt",)
    assert config.encoder.path == str(place / "out" / "start")


def test_a_finished_run_is_read_back(done, place, monkeypatch):
    monkeypatch.setattr(module, "run_training", None)
    monkeypatch.setattr(module, "prepare_corpus", None)
    monkeypatch.setattr(module, "grow_vocabulary", None)
    monkeypatch.setattr("interlingua.adapt.development.Development.measure", None)
    assert run(place) == done


def test_other_options_in_the_same_folder_are_an_error(done, place):
    with pytest.raises(ConfigError, match="learning_rate"):
        run(place, learning_rate=1e-3)


def test_no_new_pieces_leave_the_model_s_vocabulary(place):
    result = run(place, "ungrown", new_pieces=0, replay=(), check=(), sts=())
    assert result.vocabulary.pieces == 0
    assert not (place / "ungrown" / "start").exists()
    assert (
        Encoder.load(result.model).vocabulary.digest()
        == Encoder.load(place / "model").vocabulary.digest()
    )
    assert result.lost is None
    config = load_train_config(place / "ungrown" / "run" / "config.toml")
    assert (config.method.options.replay_weight, config.data.monolingual) == (0.0, None)


def test_a_run_that_was_interrupted_goes_on(done, place, monkeypatch):
    train = module.run_training

    def interrupted(config, **options):
        result = train(config, **options)
        return dataclasses.replace(result, interrupted=True, model=None)

    monkeypatch.setattr(module, "run_training", interrupted)
    with pytest.raises(InterlinguaError, match="stopped after step"):
        run(place, "stopped")
    assert not (place / "stopped" / "model").exists()
    monkeypatch.setattr(module, "run_training", train)
    again = run(place, "stopped")
    assert Encoder.load(again.model).digest() == Encoder.load(done.model).digest()
    assert again.after == done.after


ROWS = [f"{other}\t{english}" for other, english in sentences(160)]


def test_too_few_pairs_are_an_error(tmp_path, place):
    few = write_lines(tmp_path / "few.eu-en.tsv", ROWS[:4])
    with pytest.raises(DataError, match=r"few\.eu-en\.tsv: .*: 4 .*at least 111.*--pairs"):
        extend(place / "model", few, "eu", tmp_path / "out", **QUICK)
    assert list(tmp_path.iterdir()) == [few]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:1] * 200,
        # A tenth can be held out, but too few are left for validation.
        ROWS[:60],
        # Two words: too short to be held out.
        ["\t".join(" ".join(side.split()[1:3]) for side in row.split("\t")) for row in ROWS],
    ],
    ids=["equal", "sixty", "short"],
)
def test_too_few_pairs_after_cleaning_are_an_error(tmp_path, place, rows):
    few = write_lines(tmp_path / "few.eu-en.tsv", rows)
    with pytest.raises(DataError, match=r"few\.eu-en\.tsv: .*eus_Latn and eng_Latn.*--pairs"):
        extend(place / "model", few, "eu", tmp_path / "out", **QUICK)
    assert list(tmp_path.iterdir()) == [few]


def test_a_language_without_pairs_is_an_error(tmp_path, place):
    with pytest.raises(DataError, match="glg_Latn"):
        extend(place / "model", place / "pairs.eu-en.tsv", "gl", tmp_path / "out", **QUICK)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wrong", ["check_languages", "sts", "replay"])
def test_a_wrong_input_is_an_error_before_any_work(tmp_path, place, wrong):
    empty = write_lines(tmp_path / "de.txt", [""])
    changes = {"check_languages": "swh", "sts": [empty], "replay": [empty]}
    with pytest.raises(InterlinguaError):
        run(place, tmp_path / "out", **{wrong: changes[wrong]})
    assert not (tmp_path / "out").exists()


def test_the_fewest_pairs_that_are_accepted_can_be_trained_on(tmp_path, place):
    named = tmp_path / "few.eu-en.tsv"
    few = write_lines(named, ROWS[:110])
    with pytest.raises(DataError, match="expected at least 111"):
        extend(place / "model", few, "eu", tmp_path / "out", **QUICK)
    # The corrected file can be used in the same folder.
    write_lines(named, ROWS[:111])
    result = extend(place / "model", few, "eu", tmp_path / "out", **QUICK)
    assert result.model.is_dir()


def test_gain_and_loss_by_hand():
    cut = VocabularyReport(
        before=Fragmentation(1, 1, 1, 1, 0),
        premium=1.0,
        pieces=0,
        after=Fragmentation(1, 1, 1, 1, 0),
        premium_after=1.0,
        kept_texts=0,
        changed_texts=0,
    )
    before = DevelopmentScores({"heldout": 40.0, "flores: eus": 20.0, "de": 90.0, "fr": 80.0}, {})
    after = DevelopmentScores({"heldout": 60.0, "flores: eus": 30.0, "de": 89.5, "fr": 80.1}, {})
    own = ("heldout", "flores: eus")
    result = ExtendResult(
        model=module.Path(),
        language="eus_Latn",
        vocabulary=cut,
        before=before,
        after=after,
        own=own,
    )
    assert result.gained == pytest.approx(15)
    assert result.lost == pytest.approx(0.2)


def test_the_record_is_plain_json(done, place):
    record = json.loads((place / "out" / WORKSPACE_RECORD).read_text())
    assert record["settings"]["language"] == "eus_Latn"
    assert record["steps"]["after"]["value"]["retrieval"] == dict(done.after.retrieval)
    assert record["steps"]["vocabulary"]["value"]["pieces"] == done.vocabulary.pieces


def test_a_second_run_in_the_folder_is_refused(tmp_path, place):
    """Check that the refusal is before any writing."""
    lock = exclusive(tmp_path / "out", remedy="x")
    with lock, pytest.raises(ConfigError, match=f"out is in use .*{os.getpid()} .* --output"):
        extend(place / "model", place / "pairs.eu-en.tsv", "eu", tmp_path / "out", **QUICK)
    assert not (tmp_path / "out" / WORKSPACE_RECORD).exists()


@pytest.mark.parametrize(
    "damage", [{"vocabulary": 5}, {"vocabulary": {}}, {"before": {"other": 1}}, {"before": [1]}]
)
def test_a_damaged_record_is_one_line(tmp_path, place, done, damage):
    shutil.copytree(place / "out", tmp_path / "out", ignore=shutil.ignore_patterns("run"))
    path = tmp_path / "out" / WORKSPACE_RECORD
    record = read_record(path, EXTEND)
    record["steps"] |= {name: {"value": value} for name, value in damage.items()}
    write_record(path, EXTEND, record)
    with pytest.raises(DataError, match=f"{WORKSPACE_RECORD}: cannot be read"):
        run(place, tmp_path / "out")
