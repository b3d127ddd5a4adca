from __future__ import annotations

from interlingua.train.config_differences import differences


def test_keys_that_differ_are_named_with_both_values(tiny_config):
    a, b = tiny_config(), tiny_config(seed=1, eval_steps=3)
    assert differences(a, a) == []
    assert differences(a, b) == ["run.eval_steps (6.0, 3.0)", "run.seed (0, 1)"]
    assert differences(a, b, ignore=frozenset({"run.seed"})) == ["run.eval_steps (6.0, 3.0)"]
