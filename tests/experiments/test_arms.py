"""experiments/arms.py: every file of arms names runs that load, and the script asks for each
once."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from interlingua.config import from_mapping, load_toml
from interlingua.errors import ConfigError
from interlingua.evaluation.results import read_results, write_result
from interlingua.training.config import load_train_config
from interlingua.training.stages import is_staged, load_stages
from tests.evaluation.results_made import make
from tests.scripts import load_script

ROOT = Path(__file__).parents[2] / "experiments"
COMPARISON = ROOT / "comparison"
FILES = sorted(path for path in ROOT.rglob("*.toml") if "arm" in load_toml(path))


arms_script = load_script(ROOT / "arms.py")


def read(path):
    return from_mapping(arms_script.Arms, load_toml(path), where=str(path))


def overrides(command):
    return [command[place + 1] for place, part in enumerate(command) if part == "--set"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_run_of_every_file_loads_and_is_one_of_its_own(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where nothing has been trained
    monkeypatch.setenv("INTERLINGUA_DATA", "/data")
    commands = []
    arms = read(path)
    arms_script.go(arms, path.parent, run=lambda command: bool(commands.append(list(command))))
    runs, outputs = [], []
    for command in commands:
        if command[0] == "train" and is_staged(command[1]):
            assert load_stages(command[1])[1]
        elif command[0] == "train":
            config = load_train_config(command[1], overrides=overrides(command))
            outputs.append(command[command.index("--output") + 1])
            mapping = config.to_mapping()
            mapping["run"].pop("output", None)
            runs.append(json.dumps(mapping, sort_keys=True, default=str))
    assert outputs or all(arm.model for arm in arms.arm)
    assert len(set(outputs)) == len(outputs)
    assert len(set(runs)) == len(runs)
    evaluated = [
        (command[1], command[3], *command[4:]) for command in commands if command[0] == "evaluate"
    ]
    assert (
        len(set(evaluated))
        == len(evaluated)
        >= len([name for name in outputs if "trials" not in name])
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_arm_goes_on_from_those_above_it(path):
    arms, commands, made = read(path), [], set()
    arms_script.go(arms, path.parent, run=lambda command: bool(commands.append(list(command))))
    model = re.compile(rf"/{arms.runs.name}/([^/]+)/model")
    for command in commands:
        found = [name for part in command for name in model.findall(part)]
        output = command[command.index("-o") + 1] if command[0] == "average" else ""
        made |= set(model.findall(output))
        assert set(found) <= made
        if command[0] == "train" and "--output" in command:
            made.add(Path(command[command.index("--output") + 1]).name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_runs_and_reports_land_where_git_ignores_them(path):
    arms = read(path)
    assert arms.runs.resolve().is_relative_to(ROOT.parent / "runs")
    assert arms.reports.resolve().is_relative_to(ROOT.parent / "reports")


def test_tuned_arms_may_keep_the_learning_rate_chosen_before():
    chosen = {
        arm.name: arm.set["optimizer"]["learning_rate"]
        for arm in read(COMPARISON / "arms_seconds.toml").arm
    }
    tuned = {arm.name: arm for arm in read(COMPARISON / "arms_tuned.toml").arm}
    assert set(chosen) <= set(tuned)
    for name, rate in chosen.items():
        assert rate in {tried["optimizer"]["learning_rate"] for tried in tuned[name].tries}, name


def test_every_tuned_arm_tries_a_knob_besides_the_learning_rate():
    for arm in read(COMPARISON / "arms_tuned.toml").arm:
        knobs = {json.dumps(tried["method"], sort_keys=True) for tried in arm.tries}
        assert arm.model or len(knobs) == 3, arm.name


def small(tmp_path, **changes):
    (tmp_path / "run.toml").write_text("")
    table = {
        "runs": str(tmp_path / "runs"),
        "reports": str(tmp_path / "reports"),
        "seeds": [1, 2],
        "set": {"run": {"max_steps": 5}, "optimizer": {"learning_rate": 9.0}},
        "arm": [
            {"name": "as_it_is", "model": "some/model"},
            {"name": "one", "config": "run.toml", "set": {"run": {"max_steps": 7}}},
        ],
        "evaluate": [
            {"suite": "tatoeba", "options": ["--languages", "deu"]},
            {"suite": "sts17", "arms": ["one"]},
        ],
    }
    return from_mapping(arms_script.Arms, {**table, **changes})


def pretend(commands, values=None, metric="accuracy"):
    """Replace the command line by one that writes only the files that the script reads."""

    def run(command):
        commands.append(list(command))
        output = Path(command[command.index("-o" if "-o" in command else "--output") + 1])
        output.mkdir(parents=True, exist_ok=True)
        if command[0] == "train":
            set_to = dict(part.split("=") for part in overrides(command))
            value = (values or {}).get(set_to.get("optimizer.learning_rate"), 0.0)
            lines = [{"loss": 1.0}, {metric: 0.9}, {metric: value}, {"loss": 0.1}]
            (output / "metrics.jsonl").write_text(
                "".join(json.dumps(line) + "\n" for line in lines)
            )
        if command[0] == "evaluate":
            name = command[command.index("--name") + 1]
            write_result(make(name, task=command[3]), output)
        return True

    return run


def test_an_arm_goes_before_what_holds_for_all_and_a_seed_before_both(tmp_path):
    commands = []
    arms_script.go(small(tmp_path), tmp_path, run=pretend(commands), names=["one"], seeds=[2])
    train, *evaluations = commands
    assert overrides(train) == ["run.max_steps=7", "optimizer.learning_rate=9.0", "run.seed=2"]
    assert [command[3] for command in evaluations] == ["tatoeba", "sts17"]
    assert evaluations[0][4:6] == ["--languages", "deu"]
    assert evaluations[0][1] == str(tmp_path / "runs" / "one-seed2" / "model")


def test_an_arm_goes_on_from_another_of_the_same_seed(tmp_path):
    runs = tmp_path / "runs"
    arms = small(
        tmp_path,
        arm=[
            {"name": "as_it_is", "model": "other/one-seed{seed}"},
            {"name": "next", "config": "run.toml", "set": {"encoder": {"path": "one-seed{seed}"}}},
            {"name": "mean", "average": ["start", "next-seed{seed}"], "weights": [0.25, 0.75]},
        ],
    )
    commands = []
    arms_script.go(arms, tmp_path, run=pretend(commands), seeds=[2])
    verbs = [command[0] for command in commands]
    assert verbs == ["evaluate", "train", "evaluate", "average", "evaluate"]
    as_it_is, train, _, average, of_average = commands
    assert Path(as_it_is[1]).name == "one-seed2"
    assert 'encoder.path="one-seed2"' in overrides(train)
    mean = str(runs / "mean-seed2" / "model")
    assert average[1:] == [
        "start",
        "next-seed2",
        "--weights",
        "0.25,0.75",
        "-o",
        mean,
        "--overwrite",
        "--quiet",
    ]
    assert of_average[1] == mean


def chain(tmp_path, machine):
    """Write an arm, one that continues from it, and their average."""
    runs = tmp_path / machine / "runs"
    return small(
        tmp_path,
        runs=str(runs),
        reports=str(tmp_path / machine / "reports"),
        evaluate=[{"suite": "sts17"}],
        arm=[
            {"name": "old", "model": "all/before/old-seed{seed}/model"},
            {"name": "one", "config": "run.toml"},
            {
                "name": "next",
                "config": "run.toml",
                "set": {"encoder": {"path": "all/runs/one-seed{seed}/model"}},
            },
            {
                "name": "mean",
                "average": ["all/runs/one-seed{seed}/model", "all/runs/next-seed{seed}/model"],
                "weights": [0.5, 0.5],
            },
        ],
    )


def test_what_a_later_arm_needs_is_made_again_elsewhere_and_not_measured(tmp_path):
    kept = arms_script.Kept(tmp_path / "kept.jsonl")

    def verbs(machine, *names):
        commands = []
        arms = chain(tmp_path, machine)
        run = pretend(commands)
        arms_script.go(arms, tmp_path, run=run, kept=kept, seeds=[1], names=names)
        return [command[0] for command in commands]

    assert verbs("here", "old", "one", "next") == ["evaluate", *["train", "evaluate"] * 2]
    assert verbs("there") == ["train", "train", "average", "evaluate"]
    assert verbs("third") == []


@pytest.mark.parametrize(
    "arm", [{}, {"model": "m", "config": "c.toml"}, {"average": ["a", "b"], "weights": [1.0]}]
)
def test_an_arm_is_a_run_a_model_or_a_weighted_average(tmp_path, arm):
    with pytest.raises(ConfigError, match="one has"):
        small(tmp_path, arm=[{"name": "one", **arm}])


def test_what_was_evaluated_is_not_evaluated_again(tmp_path):
    for expected in (5, 0):  # the model as it is on one suite, two seeds on two
        commands = []
        arms_script.go(small(tmp_path), tmp_path, run=pretend(commands))
        assert len([command for command in commands if command[0] == "evaluate"]) == expected


def test_what_is_only_shown_is_not_taken_for_done(tmp_path, capsys):
    (tmp_path / "reports").mkdir()
    for _ in range(2):
        arms_script.go(small(tmp_path), tmp_path, run=arms_script.show)
        shown = capsys.readouterr().out.splitlines()
        assert len([line for line in shown if line.startswith("interlingua evaluate")]) == 5


@pytest.mark.parametrize(("greater", "chosen"), [(True, "0.2"), (False, "0.1")])
def test_the_better_trial_decides_the_learning_rate(tmp_path, greater, chosen):
    trials = {
        "learning_rates": [0.1, 0.2],
        "steps": 3,
        "metric": "accuracy",
        "greater_is_better": greater,
    }
    commands = []
    run = pretend(commands, {"0.1": 0.5, "0.2": 0.6})
    arms_script.go(small(tmp_path, trials=trials), tmp_path, run=run, names=["one"], seeds=[1])
    trained = [overrides(command) for command in commands if command[0] == "train"]
    assert [{"run.max_steps=3", "run.seed=100"} <= set(settings) for settings in trained] == [
        True,
        True,
        False,
    ]
    assert trained[-1] == ["run.max_steps=7", f"optimizer.learning_rate={chosen}", "run.seed=1"]


def test_the_best_of_an_arms_own_tries_is_taken_whole(tmp_path):
    tries = [{"method": {"temperature": 0.1}}, {"optimizer": {"learning_rate": 0.2}}]
    arm = {"name": "one", "config": "run.toml", "tries": tries}
    trials = {"steps": 3, "metric": "accuracy"}
    commands = []
    run = pretend(commands, {"0.2": 0.6})
    arms_script.go(small(tmp_path, trials=trials, arm=[arm]), tmp_path, run=run, seeds=[1])
    trained = [command for command in commands if command[0] == "train"]
    assert [Path(command[command.index("--output") + 1]).name for command in trained] == [
        "one-1",
        "one-2",
        "one-seed1",
    ]
    assert "method.temperature=0.1" in overrides(trained[0])
    assert overrides(trained[-1]) == [
        "run.max_steps=5",
        "optimizer.learning_rate=0.2",
        "run.seed=1",
    ]


def test_an_arm_with_more_trials_than_another_is_refused(tmp_path):
    tries = [{"method": {"temperature": 0.1}}]
    arms = [
        {"name": "one", "config": "run.toml", "tries": tries},
        {"name": "two", "config": "run.toml"},
    ]
    trials = {"steps": 3, "metric": "accuracy", "learning_rates": [0.1, 0.2]}
    with pytest.raises(ConfigError, match=r"two .* 2 tries, .* 1"):
        arms_script.go(small(tmp_path, trials=trials, arm=arms), tmp_path, run=arms_script.show)


def test_an_arm_that_is_not_there_is_refused_by_name(monkeypatch, capsys):
    path = str(ROOT / "comparison" / "arms.toml")
    monkeypatch.setattr(sys, "argv", ["arms.py", path, "--arms", "labsee"])
    with pytest.raises(SystemExit, match="2"):
        arms_script.main()
    assert "no arm labsee; there are backbone, ems" in capsys.readouterr().err


def test_the_processes_on_a_gpu_share_all_arms():
    script = (COMPARISON / "arms_gpu.sh").read_text(encoding="utf-8")
    shared = re.search(r"for arms in (.+); do", script)[1].replace('"', "").split()
    assert sorted(shared) == sorted(arm.name for arm in read(COMPARISON / "arms_gpu.toml").arm)


def test_kept_results_are_not_done_again_on_another_machine(tmp_path):
    tries = [{"optimizer": {"learning_rate": 0.1}}, {"optimizer": {"learning_rate": 0.2}}]
    arm = {"name": "one", "config": "run.toml", "tries": tries}
    kept = arms_script.Kept(tmp_path / "kept.jsonl")
    for machine, expected in (("first", 2 + 2 + 4), ("second", 0)):  # trials, seeds, evaluations
        commands = []
        folders = {
            "runs": str(tmp_path / machine / "runs"),
            "reports": str(tmp_path / machine / "reports"),
        }
        stage = tmp_path / "stage.toml"
        arms = small(
            tmp_path,
            trials={"steps": 3, "metric": "accuracy"},
            arm=[arm],
            first=[str(stage)],
            **folders,
        )
        leave = pretend(commands, {"0.1": 0.5, "0.2": 0.6})
        stages = []

        def run(command, leave=leave, stages=stages):
            return bool(stages.append(command)) if "--output" not in command else leave(command)

        arms_script.go(arms, tmp_path, run=run, kept=kept)
        assert len(commands) == expected
        assert len(stages) == bool(expected)


def test_kept_results_of_other_settings_do_not_count(tmp_path):
    kept = arms_script.Kept(tmp_path / "kept.jsonl")
    for steps in (7, 8):
        commands = []
        arm = {"name": "one", "config": "run.toml", "set": {"run": {"max_steps": steps}}}
        arms = small(
            tmp_path,
            arm=[arm],
            runs=str(tmp_path / f"{steps}"),
            reports=str(tmp_path / f"reports{steps}"),
        )
        arms_script.go(arms, tmp_path, run=pretend(commands), kept=kept, seeds=[1])
        assert [command[0] for command in commands] == ["train", "evaluate", "evaluate"]


def test_a_stopped_arm_trains_for_what_is_not_kept(tmp_path):
    kept = arms_script.Kept(tmp_path / "kept.jsonl")
    commands = []
    arms_script.go(
        small(tmp_path), tmp_path, run=pretend(commands), kept=kept, names=["one"], seeds=[1]
    )
    journal = tmp_path / "kept.finished.jsonl"
    first, second = journal.read_text().splitlines()
    journal.write_text(first + "\n")
    commands = []
    elsewhere = small(tmp_path, reports=str(tmp_path / "elsewhere"))
    arms_script.go(elsewhere, tmp_path, run=pretend(commands), kept=kept, names=["one"], seeds=[1])
    assert [(command[0], command[3]) for command in commands][1:] == [("evaluate", "sts17")]
    assert journal.read_text().splitlines() == [first, second]


def test_kept_results_are_one_table_of_the_last_ones(tmp_path):
    kept = arms_script.Kept(tmp_path / "claims" / "kept.jsonl")
    for machine, score in (("first", 0.5), ("second", 0.75)):
        reports = tmp_path / machine
        write_result(make("b" if machine == "first" else "c"), reports)
        write_result(make("a", scores=(score, score)), reports)
        kept.copy(reports)
    found = read_results([kept.table])
    assert [result.provenance["model"]["name"] for result in found] == ["a", "b", "c"]
    assert found[0].main_score == 0.75


def test_kept_is_a_table(monkeypatch, capsys):
    file = str(COMPARISON / "arms_tuned.toml")
    monkeypatch.setattr(sys, "argv", ["arms.py", file, "--kept", "results/folder"])
    with pytest.raises(SystemExit, match="2"):
        arms_script.main()
    assert ".jsonl" in capsys.readouterr().err


def stored_tables():
    return sorted((ROOT / "results").rglob("*.jsonl"))


def test_results_are_stored_as_tables_alone():
    assert stored_tables()
    files = [path for path in (ROOT / "results").rglob("*") if path.is_file()]
    assert sorted(files) == stored_tables()


@pytest.mark.parametrize("path", stored_tables(), ids=lambda path: path.stem)
def test_stored_results_name_no_folder_of_a_machine(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"[\" =,](/home|/root|/tmp|/work)/", text)
    if not path.stem.endswith(".finished"):
        assert len(read_results([path])) == text.count("\n")


@pytest.mark.parametrize(
    "path",
    [path for path in stored_tables() if path.stem.endswith(".finished")],
    ids=lambda path: path.stem,
)
def test_kept_runs_are_of_configs_in_the_repository(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    named = {json.loads(line)["settings"][0] for line in lines}
    missing = [
        name for name in named if name.endswith(".toml") and not (ROOT.parent / name).is_file()
    ]
    assert not missing


def test_kept_settings_name_no_folder_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arms = read(COMPARISON / "arms_tuned.toml")
    monkeypatch.chdir(ROOT.parent)
    config = next(arm for arm in arms.arm if arm.config)
    model = next(arm for arm in arms.arm if arm.model)
    assert arms_script.identity(config)[0].startswith("experiments/comparison/")
    assert arms_script.identity(model) == ["prepared/common/backbone"]
