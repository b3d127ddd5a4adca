from interlingua.getting_started.training import recipe
from interlingua.training.config import load_train_config


def test_recipe_is_a_config_the_train_command_reads(tmp_path):
    config = recipe(tmp_path / "corpus", tmp_path / "run", max_steps=7)
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert load_train_config(tmp_path / "config.toml") == config
    assert (config.run.max_steps, config.run.budget_seconds) == (7, None)
    assert not config.run.stop_at_budget


def test_repeats_of_a_sentence_are_no_negatives(tmp_path):
    config = recipe(tmp_path, tmp_path, budget_seconds=60)
    assert config.method.options.exclude_repeats
    assert config.encoder.initialization == "bert"
    assert config.run.budget_seconds == 60
    assert config.run.stop_at_budget
