"""``interlingua VERB ...``: the console script.

It imports the file of a verb only when that verb is called, and reports an error of the user in one
line. The verbs and their summaries are listed here, so that the overview imports no verb.
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
    "look": "Report the format, languages and faults of data files.",
    "prepare": "Clean, deduplicate and tokenize parallel text for training.",
    "train": "Train an encoder from a TOML file, or resume a run.",
    "evaluate": "Evaluate an encoder on local evaluation data.",
    "compare": "Compare result files in tables.",
    "analyse": "Analyze the vectors of an encoder, or compare two encoders.",
    "embed": "Encode the lines of text files as vectors.",
    "mine": "Find translation pairs in two texts that are not aligned.",
    "calibrate": "Learn to convert mining scores to probabilities.",
    "score": "Score the pairs of a bitext and filter them.",
    "align": "Align the sentences of a document with its translation.",
    "documents": "Build a translation memory from documents in two languages.",
    "debias": "Remove the language component from vectors.",
    "average": "Average the weights of models; development data choose the shares.",
    "extend": "Add a language to a model and limit the loss in the others.",
    "export": "Export a model for other libraries and verify its vectors.",
    "index": "Build and manage an index of passages in any language.",
    "search": "Search an index for the passages that answer a question.",
    "serve": "Serve a model over HTTP, with a web page to try it.",
    "info": "Show information about this machine, and how fast a model runs.",
    "quickstart": "Train and evaluate an encoder on public translation catalogs.",
}
USERS_ERROR = 2
COMPLETION_VARIABLE = "_INTERLINGUA_COMPLETE"
"""Variable by which a shell's script requests a completion; typer's convention."""
COMPLETION_OPTIONS = ("--install-completion", "--show-completion")
MAX_MESSAGE_CHARACTERS = 2000
"""Maximum length of an error message; a name or value from a file can have any length."""
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
        # A full disk can cause an error anywhere, and some code does not convert it to an
        # InterlinguaError.
        remedy = REMEDIES.get(error.errno or 0, "check the disk and the paths")
        message = f"{error.strerror or error}; {remedy}"
        if error.filename is not None:
            message = f"{os.fsdecode(error.filename)}: {message}"
        _tell(message)
        sys.exit(USERS_ERROR)
    finally:
        # Restore the handler, because other Python code, such as a test, may call this function.
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
    """Handle SIGTERM like Ctrl-C, so that temporary files are removed.

    Returns the previous handler.
    """
    if threading.current_thread() is not threading.main_thread():
        return None  # Python sets handlers only in the main thread
    process = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() == process:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)  # a forked process ends without cleanup
        os.kill(os.getpid(), number)

    return signal.signal(signal.SIGTERM, stop)


def overview() -> str:
    """Return the text of ``interlingua --help`` without importing any verb."""
    width = max(map(len, VERBS))
    return "\n".join(
        [
            "Usage: interlingua COMMAND [OPTIONS]",
            "",
            "Multilingual sentence embeddings: train and use encoders, mine and align text.",
            "",
            "Commands, in the usual order of work:",
            *(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items()),
            "",
            "Show the options of a command:             interlingua COMMAND --help",
            "Show the version:                          interlingua --version",
            "Complete commands and options with Tab:    interlingua --install-completion",
        ]
    )


if __name__ == "__main__":
    main()
