from __future__ import annotations

import pytest

import interlingua
from interlingua.cli import main
from interlingua.kernels import rates
from tests.verbs.test_info import _own_cache as _own_cache
from tests.verbs.test_info import model as model


def test_it_prints_what_the_function_returns(monkeypatch, model, capsys):
    monkeypatch.delenv(rates.VARIABLE)
    with pytest.raises(SystemExit) as stop:
        main.main(["info", str(model)])
    assert not stop.value.code
    assert capsys.readouterr().out.splitlines() == interlingua.info(model).lines


def test_an_unknown_executor_is_one_line_and_exit_2(monkeypatch, model, capsys):
    monkeypatch.setenv(rates.VARIABLE, "fast")
    with pytest.raises(SystemExit) as stop:
        main.main(["info", str(model)])
    assert stop.value.code == 2
    assert rates.VARIABLE in capsys.readouterr().err


def test_it_has_no_progress_to_silence(capsys):
    with pytest.raises(SystemExit) as stop:
        main.main(["info", "--quiet"])
    assert stop.value.code == 2
    assert "--quiet" in capsys.readouterr().err
