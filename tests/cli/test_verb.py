from __future__ import annotations

import pytest

from interlingua.cli import main


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["mine", "m", "a", "b", "-o", "p.tsv", "--k", "0"], "Invalid value for '--k': "),
        (["mine", "--kk", "3"], "No such option: --kk"),
        (["score"], "Missing argument"),
        (["align", "m", "a", "b", "surplus"], "Got unexpected extra argument"),
        (["train", "--steps", "x"], "No such option: --steps"),
    ],
)
def test_a_slip_in_the_options_is_one_line(capsys, arguments, line):
    with pytest.raises(SystemExit) as stop:
        main.main(arguments)
    assert stop.value.code == 2
    [told] = capsys.readouterr().err.splitlines()
    assert told.startswith(f"interlingua: {line}")
    assert told.endswith(f"; see: interlingua {arguments[0]} --help")


def test_help_ends_with_0(capsys):
    with pytest.raises(SystemExit) as stop:
        main.main(["mine", "--help"])
    assert stop.value.code == 0
    assert "Usage: interlingua mine" in capsys.readouterr().out
