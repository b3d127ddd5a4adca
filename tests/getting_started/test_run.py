import io
import json
import logging
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from interlingua.config.registry import DEFAULT_MODEL
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError
from interlingua.getting_started.run import (
    COLLECTED,
    HELDOUT,
    Settings,
    _errors_only,
    show_quickstart,
)
from interlingua.storage.locks import exclusive
from interlingua.training.budget import FittedSteps
from interlingua.training.config import load_train_config
from interlingua.training.result import Clock
from tests.getting_started.conftest import write_catalogue

ROOT = Path(__file__).resolve().parents[2]


def run(output, *, console=None, budget_seconds=15, **choices):
    """Run a job that fetches no packages."""
    settings = Settings(output=output, budget_seconds=budget_seconds, packages=(), **choices)
    return show_quickstart(settings, console=console or Console(quiet=True))


@pytest.fixture(scope="module")
def done(catalogues, tmp_path_factory):
    """The whole job on invented languages, without a network."""
    output = tmp_path_factory.mktemp("quickstart")
    console = Console(record=True, width=120, file=io.StringIO())
    found = run(output, console=console, budget_seconds=60, steps=50, catalogues=(catalogues,))
    return found, output, console.export_text()


def test_it_learns_what_character_ngrams_cannot_see(done):
    findings, _, _ = done
    scores = {score.code: score for score in findings.scores if score.kind == "sentences"}
    assert set(scores) == {"rus_Cyrl", "ell_Grek", "deu_Latn"}
    for score in scores.values():
        assert score.messages >= 30
        assert score.model_mean > 3 * score.tfidf_mean
        assert score.random == 1 / score.messages


def test_held_out_messages_are_nowhere_in_training(done):
    _, output, _ = done
    held_out = {
        side
        for file in (output / "heldout" / "sentences").iterdir()
        for line in file.read_text().splitlines()
        for side in line.split("\t")
    }
    from interlingua.batches.token_store import TokenStore
    from interlingua.vocabulary.vocabulary import Vocabulary

    vocabulary = Vocabulary.load(output / "corpus" / "vocabulary")
    tokens = {tuple(ids) for ids in vocabulary.encode(sorted(held_out), max_tokens=64)}
    store = TokenStore.open(output / "corpus" / "train")
    trained = set()
    for index in range(len(store.language_pairs)):
        for side in store.read(index, range(store.counts[index])):
            trained |= {tuple(ids.tolist()) for ids in side}
    assert len(trained) > 500
    assert not tokens & trained


def test_everything_is_left_behind(done):
    findings, output, said = done
    assert {path.name for path in output.iterdir()} == {
        "collected",
        "corpus",
        "heldout",
        "run",
        "model",
        "results",
        "quickstart.json",
        "report.html",
    }
    assert Encoder.load(output / "model").encode(["the page was removed"]).shape == (1, 128)
    assert [path.name for path in (output / "results").iterdir()] == [f"{output.name}-model"]
    recorded = json.loads((output / "quickstart.json").read_text())
    assert recorded["format"] == "interlingua-quickstart-2"
    assert recorded["training_pairs"] == findings.training_pairs > 500
    assert set(recorded["seconds"]) == {"collect", "prepare", "train", "measure"}
    assert "1/4" in said
    assert "4/4" in said
    assert f"interlingua embed {output / 'model'}" in said.replace("\n", "")
    assert findings.demonstrations[0].query in said


@pytest.fixture
def stalled(catalogues, tmp_path, monkeypatch):
    """A job with a budget on a machine that loses a second at each look at the clock."""
    monkeypatch.setattr(
        "interlingua.training.budget._measured_steps", lambda *_: FittedSteps(400, 0.25, 0.5, ())
    )
    seconds = iter(range(100_000))
    monkeypatch.setattr(Clock, "seconds", property(lambda clock: float(next(seconds))))
    output = tmp_path / "quickstart"
    return run(output, budget_seconds=120, catalogues=(catalogues,)), output


@pytest.mark.parametrize(("name", "pattern"), [("collected", COLLECTED), ("heldout", HELDOUT)])
def test_our_files_are_told_from_a_users_ones(done, name, pattern):
    folder = done[1] / name
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    assert paths
    assert [path for path in paths if not re.fullmatch(pattern, path.as_posix())] == []
    assert not re.fullmatch(pattern, "notes.txt")


def test_a_busy_machine_ends_with_the_budget(stalled):
    findings, output = stalled
    config = load_train_config(output / "run" / "config.toml")
    assert 0 < findings.steps < config.run.max_steps / 2
    records = [
        json.loads(line) for line in (output / "run" / "metrics.jsonl").read_text().splitlines()
    ]
    rates = [record["learning_rate"] for record in records if record["kind"] == "train"]
    assert rates[-1] < 0.15 * config.optimizer.learning_rate  # the schedule went on to its end
    # The command that the report names for a longer run is one that train takes.
    command = shlex.split(
        next(line for line in findings.commands if line.startswith("interlingua train"))
    )
    changes = [word for before, word in pairwise(command) if before == "--set"]
    longer = load_train_config(output / "run" / "config.toml", overrides=changes)
    assert longer.run.budget_seconds == 3600
    assert longer.run.max_steps is None


def test_the_last_lines_name_the_model_that_comes_with_the_library(done):
    findings, _, printed = done
    *_, about, command, guide = findings.commands
    assert DEFAULT_MODEL in about
    ended = printed.rstrip().splitlines()
    assert [line.strip() for line in ended[-3:]] == [about, command, guide]
    assert (ROOT / guide.rpartition(" ")[2]).is_file()
    program, verb, *files = shlex.split(command)
    assert (program, verb) == ("interlingua", "mine")
    assert files[-2:] == ["-o", "pairs.tsv"]


def test_nothing_to_learn_from(tmp_path):
    with pytest.raises(DataError, match="no catalogue"):
        run(tmp_path)


def test_too_few_sentences(tmp_path):
    write_catalogue(tmp_path / "in" / "de.mo", {"Page not found": "Seite nicht gefunden"})
    with pytest.raises(DataError, match="100 translated sentences"):
        run(tmp_path / "out", catalogues=(tmp_path / "in",))


def test_too_small_a_budget_says_how_much_it_needs(catalogues, tmp_path):
    with pytest.raises(ConfigError, match="--budget-seconds 1 leaves 0 s"):
        run(tmp_path, budget_seconds=1, catalogues=(catalogues,))


def test_a_budget_for_no_step_names_the_commands_own_option(catalogues, tmp_path, monkeypatch):
    nothing = FittedSteps(0, 0.25, 0.5, (), least_seconds=50.0)
    monkeypatch.setattr("interlingua.training.budget._measured_steps", lambda *_: nothing)
    with pytest.raises(ConfigError, match=r"^--budget-seconds 120 leaves") as caught:
        run(tmp_path, budget_seconds=120, catalogues=(catalogues,))
    # 50 s with some to spare, and what all the rest takes
    assert 60 <= int(str(caught.value).split()[-1]) < 120


@pytest.mark.parametrize("name", ["collected", "heldout", "model", "results", "quickstart.json"])
def test_what_no_quickstart_wrote_is_not_touched(catalogues, tmp_path, name):
    mine = tmp_path / name if name.endswith(".json") else tmp_path / name / "w"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(ConfigError, match=f"other files .{name}"):
        run(tmp_path, catalogues=(catalogues,))
    assert mine.read_text() == "mine"
    with pytest.raises(ConfigError, match="a file; use another --output"):
        run(mine, catalogues=(catalogues,))


def test_a_quickstart_that_was_stopped_may_begin_again(catalogues, tmp_path):
    for _ in range(2):
        with pytest.raises(ConfigError, match="--budget-seconds 1 leaves 0 s"):
            run(tmp_path, budget_seconds=1, catalogues=(catalogues,))


def test_one_quickstart_in_a_folder_at_a_time(tmp_path):
    lock = exclusive(tmp_path / "out", remedy="x")
    with lock, pytest.raises(ConfigError, match=r"out is in use .* --output"):
        run(tmp_path / "out")


def test_warnings_are_back_after_an_error():
    logger = logging.getLogger("interlingua")
    level = logger.level
    with pytest.raises(DataError), _errors_only():
        raise DataError("broken")
    assert logger.level == level
