"""The server's log: a line of JSON for each request and each other event."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

WriteLine = Callable[[dict[str, Any]], None]
LOGGERS = ("uvicorn", "asyncio")
"""Loggers of the libraries that report errors of a connection or a task."""


def write_json_line(record: dict[str, Any]) -> None:
    """Write a line of the log to standard error.

    If its reader has gone, requests are answered without the log.
    """
    with contextlib.suppress(OSError, ValueError):
        print(json.dumps(record, ensure_ascii=False), file=sys.stderr, flush=True)


def now() -> str:
    """Return the current time for a line."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def write_message(level: str, message: str) -> None:
    """Write a line that belongs to no request."""
    write_json_line({"time": now(), "level": level, "message": message})


class JsonHandler(logging.Handler):
    """Handler that writes log records as lines of JSON, with the traceback in a field."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log record as one line of JSON."""
        line = {"time": now(), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = logging.Formatter().formatException(record.exc_info)
        write_json_line(line)


def log_libraries_as_json() -> None:
    """Redirect the libraries of the server to its log."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [JsonHandler()]
        logger.propagate = False
