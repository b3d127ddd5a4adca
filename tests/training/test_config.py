import dataclasses
from pathlib import Path

import pytest

from interlingua.config import FileText, with_absolute_paths
from interlingua.errors import ConfigError
from interlingua.methods.matryoshka import Matryoshka
from interlingua.training.config import (
    _SIZES,
    EncoderConfig,
    RunConfig,
    config_differences,
    load_train_config,
    train_config_from,
)


@pytest.fixture
def written(tiny_config, tmp_path):
    """The file of the tiny run."""
    path = tmp_path / "config.toml"
    path.write_text(tiny_config().to_toml(), encoding="utf-8")
    return path


def test_written_file_reads_back_to_the_same_config(tiny_config, written):
    config = tiny_config(max_grad_norm=1.5, metric_for_best_model="tatoeba_accuracy")
    written.write_text(config.to_toml(), encoding="utf-8")
    assert load_train_config(written) == config


def test_method_section_is_the_method_s_own_config(tiny_config):
    config = tiny_config()
    assert (config.method.name, type(config.method.options).__name__) == ("ems", "EMSConfig")
    assert config.method.options.projection_dim == 16


def test_prefixes_stand_beside_the_method_s_own_options(tiny_config, written):
    overrides = ["method.matryoshka=[32, 8]", "method.matryoshka_weights=[1, 0.5]"]
    config = load_train_config(written, overrides=overrides)
    assert config.method.prefixes == Matryoshka(dims=(32, 8), weights=(1.0, 0.5))
    written.write_text(config.to_toml(), encoding="utf-8")
    assert load_train_config(written) == config
    assert config_differences(config.to_mapping(), tiny_config().to_mapping()) == [
        "method.matryoshka ([32, 8], None)",
        "method.matryoshka_weights ([1.0, 0.5], None)",
    ]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("method.projectiondim=16", "projection_dim"),
        ("method.name=emz", "did you mean 'ems'"),
        ("run.max_step=3", "max_steps"),
        ("run.batch_size=3", "did you mean 'global_batch_size'"),
        ("optimizer.lr=3", "did you mean 'learning_rate'"),
        ("optimizer.name=sgd", "adamw"),
        ("optimizer.learning_rate=0", "learning_rate: expected"),
        ("schedule.warmup_steps=-1", "warmup_steps: expected"),
        (("schedule.name=ramp", "schedule.warmup_steps=20"), "the whole run"),
        ("run.save_steps=0", "save_steps: expected"),
        ("run.eval_steps=2.5", r"eval_steps: .*whole number.*2\.5"),
        ("run.max_steps=0", "max_steps: expected"),
        ("encoder.path=xlm-roberta-base", "either preset"),
        ("learning_rate=0.1", "unknown key"),
        ("method.matryoshka=[16, 32]", r"method: matryoshka is \[16, 32\]"),
        ("method.matryoshka=[1.5]", "matryoshka"),
        ("method.matryoshka_weights=[1.0]", "matryoshka_weights has no effect"),
    ],
)
def test_slips_name_what_is_wrong(written, override, message):
    with pytest.raises(ConfigError, match=message):
        load_train_config(written, overrides=[override] if isinstance(override, str) else override)


def test_an_override_of_the_length_takes_its_place(written):
    run = load_train_config(written, overrides=["run.budget_seconds=60"]).run
    assert (run.max_steps, run.num_train_epochs, run.budget_seconds) == (None, None, 60.0)
    with pytest.raises(ConfigError, match="exactly one of"):
        load_train_config(written, overrides=["run.budget_seconds=60", "run.max_steps=5"])


def test_method_must_be_named(tiny_table):
    del tiny_table["method"]["name"]
    with pytest.raises(ConfigError, match=r"name; .*ems"):
        train_config_from(tiny_table)


def test_a_pretrained_backbone_has_its_sizes():
    with pytest.raises(ConfigError, match="hidden_size cannot be changed"):
        EncoderConfig(path="somewhere", hidden_size=64)
    with pytest.raises(ConfigError, match="initialization"):
        EncoderConfig(path="somewhere", initialization="bert")


def test_sizes_are_fields_of_the_backbone():
    from interlingua.encoder.modeling.backbone import BackboneConfig

    assert set(_SIZES) <= {field.name for field in dataclasses.fields(BackboneConfig)}
    assert EncoderConfig(preset="ems-tiny", hidden_size=48).sizes() == {"hidden_size": 48}


@pytest.mark.parametrize(
    ("global_size", "micro_size", "processes", "micro_batches"),
    [(24, None, 1, 1), (24, 6, 1, 4), (24, 6, 2, 2)],
)
def test_accumulation(global_size, micro_size, processes, micro_batches):
    run = RunConfig(
        output=Path("x"), max_steps=1, global_batch_size=global_size, micro_batch_size=micro_size
    )
    assert run.accumulation(processes) == micro_batches


@pytest.mark.parametrize(("micro_size", "processes"), [(7, 1), (24, 2)])
def test_sizes_that_do_not_divide(micro_size, processes):
    run = RunConfig(
        output=Path("x"), max_steps=1, global_batch_size=24, micro_batch_size=micro_size
    )
    with pytest.raises(ConfigError, match="not a multiple"):
        run.accumulation(processes)


def test_differences_name_keys_and_values(tiny_config):
    a = tiny_config().to_mapping()
    b = tiny_config(seed=3, logging_steps=5).to_mapping()
    assert config_differences(a, a) == []
    assert config_differences(a, b) == ["run.logging_steps (1.0, 5.0)", "run.seed (0, 3)"]
    assert config_differences(a, b, ignore=frozenset({"run.seed", "run.logging_steps"})) == []


def test_absolute_paths_mean_the_same_elsewhere(tiny_table, tmp_path, monkeypatch):
    (tmp_path / "backbone").mkdir()
    monkeypatch.chdir(tmp_path)
    tiny_table["encoder"] = {"path": "backbone"}
    tiny_table["run"]["output"] = "run"
    config = with_absolute_paths(train_config_from(tiny_table))
    assert (config.run.output, config.encoder.path) == (
        tmp_path / "run",
        str(tmp_path / "backbone"),
    )
    hub = with_absolute_paths(EncoderConfig(path="hf:someone/model"))
    assert hub.path == "hf:someone/model"


@pytest.mark.parametrize("from_file", [False, True])
def test_a_methods_paths_become_absolute(tiny_table, tmp_path, monkeypatch, from_file):
    monkeypatch.chdir(tmp_path)
    teacher = FileText.in_folder("../teacher", Path("experiments")) if from_file else "teacher"
    tiny_table["method"] = {
        "name": "anchor",
        "teachers": [teacher, "hf:a/b"],
        "teacher_prompts": ["", ""],
    }
    options = with_absolute_paths(train_config_from(tiny_table)).method.options
    assert options.teachers == (str(tmp_path / "teacher"), "hf:a/b")


def test_paths_in_terms_become_absolute(tiny_table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    teacher = FileText.in_folder("../teacher", Path("experiments"))
    tiny_table["method"] = {
        "name": "combination",
        "terms": {"follow": {"method": "distill", "teacher": teacher}},
    }
    config = train_config_from(tiny_table)
    # No defaults: what the user wrote is what config.toml keeps.
    expected = {"method": "distill", "teacher": str(tmp_path / "teacher")}
    assert config.method.options.terms["follow"] == expected


@pytest.mark.parametrize("processes", [5, 25])
def test_only_sizes_that_were_set_are_named(processes):
    run = RunConfig(output=Path("x"), max_steps=1, global_batch_size=24)
    with pytest.raises(
        ConfigError, match=f"global_batch_size 24 cannot be .* {processes} processes"
    ) as caught:
        run.accumulation(processes)
    assert "micro_batch_size" not in str(caught.value)


def test_the_section_is_named_once(tiny_table):
    tiny_table["run"]["save_steps"] = 0
    with pytest.raises(ConfigError) as caught:
        train_config_from(tiny_table, where="a.toml")
    expected = "a number above 0 and at most 1000000000000"
    assert str(caught.value) == f"a.toml: run.save_steps: expected {expected}, found 0"


def test_the_learning_rate_goes_by_the_kind_of_start(tiny_table):
    del tiny_table["optimizer"]["learning_rate"]
    assert train_config_from(tiny_table).optimizer.learning_rate == 3e-4
    assert (
        train_config_from({**tiny_table, "encoder": {"path": "model"}}).optimizer.learning_rate
        == 5e-5
    )
    tiny_table["optimizer"]["learning_rate"] = 1e-3
    assert (
        train_config_from({**tiny_table, "encoder": {"path": "model"}}).optimizer.learning_rate
        == 1e-3
    )
