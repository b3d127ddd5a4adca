"""Terms of a combination: how a table is read, and that its paths become absolute."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.config import FileText
from interlingua.errors import ConfigError
from interlingua.methods.infonce import InfoNCE
from interlingua.methods.terms import read_term, with_absolute_values


def test_a_table_is_read_as_method_options_and_weight():
    term = read_term("rank", {"method": "infonce", "weight": 2, "temperature": 0.1})
    assert term.method is InfoNCE
    assert term.options == InfoNCE.Config(temperature=0.1)
    assert term.weight == 2.0


@pytest.mark.parametrize(
    ("label", "table", "message"),
    [
        ("rank", "infonce", "a method"),
        ("rank", {"method": "infonse"}, "did you mean 'infonce'"),
        ("a b", {"method": "infonce"}, "a label"),
        ("rank", {"method": "infonce", "weight": 0}, "weight is 0"),
        ("rank", {"method": "infonce", "weight": True}, "weight is True"),
        ("rank", {"method": "infonce", "heat": 1}, "terms.rank: unknown key 'heat'"),
    ],
)
def test_a_wrong_table_is_refused(label, table, message):
    with pytest.raises(ConfigError, match=message):
        read_term(label, table)


def test_only_paths_are_changed_and_defaults_stay_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    teacher = FileText.in_folder("../teacher", Path("experiments"))
    table = {"method": "distill", "weight": 2, "teacher": teacher}
    found = with_absolute_values(table, read_term("follow", table))
    assert found == {"method": "distill", "weight": 2, "teacher": str(tmp_path / "teacher")}
