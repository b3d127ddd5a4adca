from __future__ import annotations

import interlingua
from interlingua.encoder.executors.choice import EXECUTOR_VARIABLE
from tests.verbs.test_info import _own_cache as _own_cache
from tests.verbs.test_info import model as model


def test_it_prints_what_the_function_returns(done, monkeypatch, model):
    monkeypatch.delenv(EXECUTOR_VARIABLE)
    assert done(f"info {model}").out.splitlines() == interlingua.info(model).lines


def test_an_unknown_executor_is_one_line_and_exit_2(refused, monkeypatch, model):
    monkeypatch.setenv(EXECUTOR_VARIABLE, "fast")
    assert EXECUTOR_VARIABLE in refused(f"info {model}").err


def test_it_has_no_progress_to_silence(refused):
    assert "--quiet" in refused("info --quiet").err
