from __future__ import annotations

import tomllib

from interlingua.cli.train_help import EPILOG, EXAMPLE
from interlingua.config.registry import METHODS
from interlingua.training.config import train_config_from


def test_every_method_is_listed():
    listed = EPILOG.partition("A config")[0].replace(",", " ").split()
    assert [name for name in METHODS if name not in listed] == []


def test_the_example_is_a_config():
    assert train_config_from(tomllib.loads(EXAMPLE)).method.name == "ems"
    assert all(line.strip() in EPILOG for line in EXAMPLE.splitlines())
