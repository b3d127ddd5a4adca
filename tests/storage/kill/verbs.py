"""Command lines of all verbs that resume or leave a record, and runs of them that are killed."""

from __future__ import annotations

import functools
import os
import shlex
import signal
import subprocess
import sys
import traceback
import warnings

from interlingua.cli.main import main
from tests.golden.world import PREPARE, WORDS, write_inputs

TRAIN = """
[data]
corpus = "{world}/corpus"
valid_pairs = 16
[encoder]
preset = "ems-tiny"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 16
[method]
{method}
[run]
output = "{output}"
max_steps = 6
global_batch_size = 8
precision = "fp32"
device = "cpu"
threads = 1
eval_steps = 3
save_steps = 2
"""
STAGES = """
output = "{out}/stages"
[[stage]]
name = "first"
config = "{out}/train.toml"
[[stage]]
name = "second"
config = "{out}/train.toml"
set.encoder.path = "{{first.model}}"
"""
CALLS = ("rename", "replace", "fsync", "fdatasync")
"""System calls at which a run is killed: each ends a step, a record or a line."""


def make_world(folder):
    """Write the inputs, a corpus and a model; in a process of its own, see ``run``."""
    write_inputs(folder)
    (folder / "prepare.toml").write_text(prepare_config(folder, folder), encoding="utf-8")
    for name, method in {
        "train": 'name = "ems"',
        "bank": 'name = "anchor"\nbank_size = 32',
    }.items():
        text = TRAIN.format(world=folder, method=method, output="OUTPUT")
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    for number in range(3):
        for code, word in (("de", "haus"), ("en", "house")):
            lines = [f"{word}{number} {word}{line} {word}{line % 3}" for line in range(8)]
            (folder / f"{number}.{code}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for number in range(3):
        entries = [
            f'msgid "house{n} house{number}"\nmsgstr "haus{n} haus{number}"\n' for n in range(9)
        ]
        header = 'msgid ""\nmsgstr "Language: de\\n"\n'
        catalog = folder / "catalogs" / f"{number}.po"
        catalog.parent.mkdir(exist_ok=True)
        catalog.write_text("\n".join([header, *entries]), encoding="utf-8")
    rows = [f"{folder}/{n}.de\t{folder}/{n}.en\n" for n in range(3)]
    (folder / "list.tsv").write_text("".join(rows), encoding="utf-8")
    call(["prepare", f"{folder}/prepare.toml"])
    call(train(folder, folder))


def prepare_config(world, out):
    """Write a TOML file of prepare with absolute paths."""
    text = PREPARE.replace('"corpus"', f'"{out}/corpus"')
    return text.replace("bitext/", f"{world}/bitext/")


def train(world, out, name="train"):
    """Return a command of a training run in a folder."""
    text = (world / f"{name}.toml").read_text(encoding="utf-8").replace("OUTPUT", f"{out}/run")
    (out / f"{name}.toml").write_text(text, encoding="utf-8")
    return ["train", f"{out}/{name}.toml"]


COMMANDS = {
    "evaluate": "evaluate {model} --data {world}/heldout -o {out}/reports --cache {out}/cache"
    " --name tiny",
    "analyse": "analyse {model} --data {world}/flores --only agnosticism --set agnosticism.k=2"
    " -o {out}/analyses --name tiny",
    "embed": "embed {model} {world}/texts/deu_Latn.txt {world}/texts/rus_Latn.txt"
    " -o {out}/vectors/",
    "mine": "mine {words} {world}/a.de {world}/a.en {backend} --work {out}/work"
    " -o {out}/mined.tsv --threshold 1.4",
    "calibrate": "calibrate {words} {world}/a.de {world}/a.en {backend} --work {out}/work"
    " -o {out}/calibration.json --gold {world}/gold.tsv --parallel {world}/known.de-en.tsv",
    "score": "score {words} {world}/known.de-en.tsv {backend} -o {out}/scored.tsv"
    " --work {out}/work",
    "score of a folder": "score {words} {world}/catalogs {backend} -o {out}/all.tsv",
    "align": "align {words} --list {world}/list.tsv {backend} -o {out}/links"
    " --texts {out}/linked.tsv",
    "documents": "documents {words} {world}/manuals/de {world}/manuals/en {backend}"
    " --work {out}/work -o {out}/memory.tsv --write-pairs {out}/pairs.tsv",
    "index": "index build {model} {world}/texts/deu_Latn.txt -o {out}/index",
    "average": "average {model} {world}/run/best -o {out}/averaged --pairs {world}/heldout/heldout"
    " --grid 0,1",
    "debias": "debias {model} {world}/texts -o {out}/debiased --sentences 24",
    "extend": "extend {world}/small/model --pairs {world}/small/pairs.eu-en.tsv --lang eu"
    " --check {world}/small/check --epochs 1 --batch-size 32 --heldout 12 --threads 1 --device cpu"
    " -o {out}/extended",
}
VERBS = ("prepare", "train", "train with a bank", "train stages", *COMMANDS)


def command_of(verb, world, out):
    """Return the command line of a verb that writes only into a folder."""
    out.mkdir(exist_ok=True)
    if verb == "prepare":
        (out / "prepare.toml").write_text(prepare_config(world, out), encoding="utf-8")
        return ["prepare", f"{out}/prepare.toml"]
    if verb == "train":
        return train(world, out)
    if verb == "train with a bank":
        return train(world, out, "bank")
    if verb == "train stages":
        train(world, out)
        (out / "stages.toml").write_text(STAGES.format(out=out), encoding="utf-8")
        return ["train", f"{out}/stages.toml"]
    words, *backend = WORDS
    return shlex.split(
        COMMANDS[verb].format(
            world=world,
            out=out,
            model=f"{world}/run/model",
            words=words,
            backend=shlex.join(backend),
        )
    )


def call(command):
    """Run a command line in this process; return its exit status."""
    try:
        main(command)
    except SystemExit as stop:
        return stop.code or 0
    return 0


def run(action, log, *, kill_at=0):
    """Run an action in a process of its own.

    A fork, as a new process would import torch for seconds.

    Args:
        action: returns an exit status.
        log: file of what it prints on stderr.
        kill_at: the process dies by SIGKILL in this call of ``CALLS``, counted from 1.

    Returns:
        the exit status, negative for a signal, and the number of calls.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 70
        try:
            os.close(reader)
            with open(log, "w", buffering=1) as stderr, open(os.devnull, "w") as stdout:
                sys.stderr, sys.stdout = stderr, stdout
                count = count_calls(kill_at)
                try:
                    status = action()
                except BaseException:
                    traceback.print_exc()
                os.write(writer, str(count[0]).encode())
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        calls = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), int(calls or 0)


def run_alone(command, log, *, kill_at=0):
    """Run a command line in a new process, as ``run`` does; a fork would lose LanceDB's threads."""
    program = [sys.executable, "-m", "tests.storage.kill.verbs", str(kill_at), *command]
    with open(log, "w") as stderr:
        done = subprocess.run(program, stdout=subprocess.PIPE, stderr=stderr, check=False)
    calls = done.stdout.rsplit(b" ", 1)[-1]
    return done.returncode, int(calls) if calls.strip().isdigit() else 0


def count_calls(kill_at):
    """Count the calls of this process, and kill it in one of them; return the counter."""
    count = [0]

    def counted(real, *arguments, **options):
        count[0] += 1
        if count[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    for name in CALLS:
        setattr(os, name, functools.partial(counted, getattr(os, name)))
    return count


if __name__ == "__main__":
    counter = count_calls(int(sys.argv[1]))
    exit_status = call(sys.argv[2:])
    print(f" {counter[0]}")
    sys.exit(exit_status)
