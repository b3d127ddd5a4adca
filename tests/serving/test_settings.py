"""Limits that can't be."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from interlingua.errors import ConfigError
from interlingua.serving.settings import ServeSettings

NAMES = [
    "batch_tokens",
    "queue_tokens",
    "max_texts",
    "max_request_tokens",
    "max_body",
    "body_seconds",
    "stop_seconds",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1])
def test_limits_are_positive(name, value):
    with pytest.raises(ConfigError, match=name):
        ServeSettings(**{name: value})


@pytest.mark.parametrize("key", ["", " \n"])
def test_an_empty_key_would_admit_everyone(key):
    with pytest.raises(ConfigError, match="api_key"):
        ServeSettings(api_key=key)


def test_an_empty_key_in_the_environment_starts_no_server(tmp_path):
    """Set an empty key, as an unset secret of Kubernetes or Compose does."""
    command = [sys.executable, "-m", "interlingua", "serve", str(tmp_path)]
    env = {**os.environ, "INTERLINGUA_SERVE_API_KEY": ""}
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "INTERLINGUA_SERVE_API_KEY is empty" in result.stderr
