from __future__ import annotations

import json
import logging
import sys

import pytest

from interlingua.serving import json_log


@pytest.fixture
def logger(monkeypatch):
    monkeypatch.setattr(json_log, "LOGGERS", ["interlingua.test_json_log"])
    json_log.log_libraries_as_json()
    return logging.getLogger("interlingua.test_json_log")


def test_a_librarys_error_is_one_line_with_its_traceback(logger, capsys):
    try:
        raise ValueError("a broken\nframe")
    except ValueError:
        logger.exception("connection %s", "lost")
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert found["level"] == "error"
    assert found["message"] == "connection lost"
    assert "ValueError: a broken\nframe" in found["traceback"]


def test_a_message_that_belongs_to_no_request(capsys):
    json_log.write_message("warning", "Grüße\nan alle")
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert (found["level"], found["message"]) == ("warning", "Grüße\nan alle")
    assert found["time"].endswith("Z")


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_log_that_can_not_be_written_to_stops_nothing(error, monkeypatch):
    class Gone:
        def write(self, text):
            raise error

        def flush(self):
            raise error

    monkeypatch.setattr(sys, "stderr", Gone())
    json_log.write_message("info", "to no reader")
