from __future__ import annotations

import collections
import sys

import pytest

from interlingua.config import registry
from interlingua.errors import ConfigError


def table(**places):
    return registry.Registry(
        "thing", "interlingua.things", base="package:Base", needs=("pop",), places=places
    )


def test_resolve_imports_what_the_name_stands_for():
    things = table(ordered="collections:OrderedDict")
    for name in ("ordered", "collections:OrderedDict"):
        assert registry.resolve_name(things, name) is collections.OrderedDict


def test_unknown_name_offers_the_nearest():
    with pytest.raises(ConfigError, match=r"thing 'mexam'; .*'mexma'"):
        registry.resolve_name(table(mexma="x:y", ems="x:z"), "mexam")


def test_unknown_name_far_from_all_lists_them():
    with pytest.raises(ConfigError, match="use one of: a, b"):
        registry.resolve_name(table(b="x:y", a="x:z"), "something")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("no_such_package.module:Class", "no_such_package"),
        ("collections:OrderedDcit", "did you mean 'OrderedDict'"),
        ("collections:", "package.module:Class"),
        (":Class", "package.module:Class"),
        ("fractions:Fraction", "has no pop"),
        ("json:loads", "'json:loads': expected a class"),
    ],
)
def test_a_wrong_place_is_one_line(place, message):
    with pytest.raises(ConfigError, match=message) as raised:
        registry.resolve_name(table(), place)
    assert "\n" not in str(raised.value)


def test_code_that_fails_when_it_is_imported_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "fails_at_once.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="ZeroDivisionError"):
        registry.resolve_name(table(), "fails_at_once:Class")


def test_a_name_with_more_behind_it_is_no_place():
    things = table(mteb="x:y")
    assert not things.is_place("mteb:STS17")
    assert not things.is_place("mteb")
    assert things.is_place("package.module:Class")
    names = ("mteb:STS17", "mteb", "a.b:C")
    assert list(map(things.label, names)) == ["mteb:STS17", "mteb", "C"]


REGISTRIES = [found for found in vars(registry).values() if isinstance(found, registry.Registry)]


@pytest.mark.parametrize("known", REGISTRIES, ids=lambda found: found.group)
def test_every_entry_resolves(known):
    assert known
    for name in known:
        found = registry.resolve_name(known, name)
        assert [attribute for attribute in known.needs if not hasattr(found, attribute)] == [], name
