"""``interlingua VERB ...``: the console script.

It imports a verb's file only when that is called, and turns users' errors into one line. The list
of verbs and their summaries are here for that reason: the overview imports none of them.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any

from interlingua import __version__
from interlingua.cli.verb import call_verb, completion, reader_has_left
from interlingua.config.registry import did_you_mean
from interlingua.errors import InterlinguaError
from interlingua.runtime.processes import is_first_on_machine

VERBS = {
    "look": "Report what is in files before any work: format, languages, faults.",
    "prepare": "Clean, deduplicate and tokenize parallel text into a corpus to train on.",
    "train": "Train an encoder from a TOML file; goes on where it stopped.",
    "evaluate": "Measure an encoder on local evaluation folders.",
    "compare": "Make one table from many result files.",
    "analyse": "Say why an encoder is as good as it is, or what has changed between two.",
    "embed": "Turn a file of lines into vectors.",
    "mine": "Find translations in two texts that are not aligned.",
    "calibrate": "Learn what a mining score is worth: the probability that a pair is a"
    " translation.",
    "score": "Score or filter the pairs of a bitext as they stream by.",
    "align": "Link the sentences of two documents that are translations of each other.",
    "documents": "Make a translation memory from the documents of two languages.",
    "debias": "Take the language out of a model's vectors, or out of stored ones.",
    "average": "Mix the weights of models, by shares that development data choose.",
    "extend": "Teach a model another language without forgetting the others.",
    "export": "Write a model for sentence-transformers and check the round trip.",
    "index": "Store passages with their vectors, to be searched in any language.",
    "search": "Find the passages of an index that answer a question.",
    "serve": "Answer embedding requests over HTTP, and show a page to try the model.",
    "info": "Say what this machine can do, and how it would encode with a model.",
    "quickstart": "From translation catalogues to a trained, measured encoder in minutes.",
}
USERS_ERROR = 2
COMPLETION_VARIABLE = "_INTERLINGUA_COMPLETE"
"""Variable by which a shell's script requests a completion; typer's convention."""
COMPLETION_OPTIONS = ("--install-completion", "--show-completion")
MAX_MESSAGE_CHARACTERS = 2000
"""A file may put any name or value into an error."""
REMEDIES = {
    errno.ENOSPC: "free some space and run the same command again",
    errno.EDQUOT: "free some space and run the same command again",
    errno.EACCES: "check the permissions, or choose another path",
    errno.EROFS: "choose a path that can be written to",
    errno.ENOTDIR: "a part of the path is a file; choose another path",
    errno.EISDIR: "expected a file, found a folder; pass the path of a file",
    errno.ENOENT: "check the path",
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096",
    errno.ENOMEM: "free some memory, or process less data at a time",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the console script.

    Exits with 0, or with 2 and one line on stderr for every error that the user can correct.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    verb, *rest = list(arguments) or ["--help"]
    before = _stop_at_sigterm()
    try:
        _dispatch(verb, rest)
    except InterlinguaError as error:
        # All processes on a machine find the same mistake; only one reports it.
        if is_first_on_machine():
            _tell(str(error))
        sys.exit(USERS_ERROR)
    except KeyboardInterrupt:  # before the command started
        _tell("stopped")
        sys.exit(USERS_ERROR)
    except BrokenPipeError:
        reader_has_left()
    except OSError as error:
        # A full disk may be met anywhere, so that not every place makes an error of ours of it.
        remedy = REMEDIES.get(error.errno or 0, "check the disk and the paths")
        message = f"{error.strerror or error}; {remedy}"
        if error.filename is not None:
            message = f"{os.fsdecode(error.filename)}: {message}"
        _tell(message)
        sys.exit(USERS_ERROR)
    finally:
        # For a caller in Python, such as a test.
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _dispatch(verb: str, rest: list[str]) -> None:
    if COMPLETION_VARIABLE in os.environ or verb in COMPLETION_OPTIONS:
        completion(VERBS, [verb, *rest])
    elif verb in ("-h", "--help"):
        print(overview())
    elif verb == "--version":
        print(f"interlingua {__version__}")
    elif verb not in VERBS:
        raise InterlinguaError(
            f"unknown command {verb!r}{did_you_mean(verb, VERBS)}; see: interlingua --help"
        )
    else:
        call_verb(verb, VERBS[verb], rest)


def _tell(text: str) -> None:
    line = " ".join(text.split())
    if len(line) > MAX_MESSAGE_CHARACTERS:
        line = f"{line[:MAX_MESSAGE_CHARACTERS]}..."
    # A name from a file system may hold lone surrogates, which can't be printed.
    line = line.encode(errors="backslashreplace").decode()
    print(f"interlingua: {line}", file=sys.stderr)


def _stop_at_sigterm() -> Any:
    """Make SIGTERM as good as Ctrl-C, so that temporary files are removed.

    Returns the handler before.
    """
    if threading.current_thread() is not threading.main_thread():
        return None  # Python sets handlers only in the main thread
    process = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() == process:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)  # a child by fork just ends
        os.kill(os.getpid(), number)

    return signal.signal(signal.SIGTERM, stop)


def overview() -> str:
    """Return the text of ``interlingua --help`` without importing any verb."""
    width = max(map(len, VERBS))
    return "\n".join(
        [
            "Usage: interlingua COMMAND [OPTIONS]",
            "",
            "Language-agnostic sentence embeddings: from parallel text to a trained and measured"
            " encoder.",
            "",
            "Commands, in the order of the work:",
            *(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items()),
            "",
            "interlingua COMMAND --help explains one; interlingua --version prints the version;",
            "interlingua --install-completion makes the Tab key complete commands and options.",
        ]
    )


if __name__ == "__main__":
    main()
