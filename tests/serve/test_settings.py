"""Limits that can't be."""

from __future__ import annotations

import pytest

from interlingua.errors import ConfigError
from interlingua.serve.settings import ServeSettings

NAMES = ["batch_tokens", "queue_tokens", "max_texts", "max_request_tokens", "max_body", "body_seconds"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1])
def test_limits_are_positive(name, value):
    with pytest.raises(ConfigError, match=name):
        ServeSettings(**{name: value})


def test_an_empty_key_would_admit_everyone():
    with pytest.raises(ConfigError, match="api_key"):
        ServeSettings(api_key="")
