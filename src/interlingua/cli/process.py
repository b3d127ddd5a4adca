"""The console script as a process of its own, which starts and ends quickly.

Python's garbage collector goes through all objects again and again while torch is imported and a
model is read, and frees every object at the end. Both take longer than a short command itself.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from typing import NoReturn

from interlingua.cli.main import USERS_ERROR, main

_THRESHOLDS = (50_000, 20, 20)
"""Thresholds of the garbage collector, as ``gc.set_threshold`` takes them."""


def run() -> NoReturn:
    """Run the console script, and end the process with its status."""
    gc.set_threshold(*_THRESHOLDS)
    try:
        main()
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        end_process(end.code or 0)
    end_process(0)


def end_process(status: int) -> NoReturn:
    """End the process without freeing its objects one by one.

    Before the end, functions registered with ``atexit`` are called, and standard output and error
    are flushed. If other threads are still running, Python ends in the usual way.
    """
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if any(not thread.daemon for thread in others):
        sys.exit(status)
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:  # the reader of the output has exited
        pass
    except OSError as error:
        reason = error.strerror or str(error)
        # ``print`` is not used, because its stream may be the one that failed.
        os.write(2, f"interlingua: standard output cannot be written: {reason}\n".encode())
        status = USERS_ERROR
    os._exit(status)
