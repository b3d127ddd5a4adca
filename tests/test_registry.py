from __future__ import annotations

import pytest

from interlingua import registry
from interlingua.errors import ConfigError


def test_resolve_imports_what_the_name_stands_for():
    assert registry.resolve({"ordered": "collections:OrderedDict"}, "ordered").__name__ == "OrderedDict"


def test_unknown_name_offers_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'mexma'"):
        registry.resolve({"mexma": "x:y", "ems": "x:z"}, "mexam")


def test_unknown_name_far_from_all_lists_them():
    with pytest.raises(ConfigError, match="known: a, b"):
        registry.resolve({"b": "x:y", "a": "x:z"}, "something")


@pytest.mark.parametrize(
    "table",
    [registry.METHODS, registry.TASKS, registry.FORMATS, registry.BACKENDS],
    ids=["methods", "tasks", "formats", "backends"],
)
def test_every_entry_resolves(table):
    assert table
    for name in table:
        assert callable(registry.resolve(table, name)), name
