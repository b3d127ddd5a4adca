import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(code, *, stdout=subprocess.PIPE):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        [sys.executable, "-c", code],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )


def code_with(main, more=""):
    """Return the code of a process with another command in place of the console script's."""
    return (
        "import atexit, sys, threading, time\n"
        "from interlingua.cli import process\n"
        f"{main}\n"
        "process.main = main\n"
        f"{more}\n"
        "process.run()\n"
        "print('never')\n"
    )


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [("pass", 0, ""), ("sys.exit(2)", 2, ""), ("sys.exit(None)", 0, ""), ("sys.exit('x')", 1, "x")],
)
def test_the_status_is_that_of_the_command(ends, status, said):
    done = run(code_with(f"def main():\n    print('made', end='')\n    {ends}"))
    assert (done.returncode, done.stdout, done.stderr.strip()) == (status, "made", said)


def test_functions_registered_at_exit_run_and_may_print():
    main = "def main():\n    atexit.register(print, 'last')"
    assert run(code_with(main)).stdout == "last\n"


def test_another_thread_is_waited_for():
    main = (
        "def main():\n"
        "    def work():\n        time.sleep(0.3)\n        print('worked')\n"
        "    threading.Thread(target=work).start()\n"
        "    sys.exit(2)"
    )
    done = run(code_with(main))
    assert (done.returncode, done.stdout) == (2, "worked\n")


def test_an_unexpected_error_keeps_its_traceback():
    done = run(code_with("def main():\n    raise ZeroDivisionError"))
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_ends_with_one_line():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run(code_with("def main():\n    print('made')"), stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("interlingua: standard output")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_has_left_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = run(code_with("def main():\n    print('made')"), stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
