"""README.md: the command of each row of its table runs, on the files that the row names."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import shlex
from pathlib import Path

import pytest

from interlingua.cli.main import VERBS, main
from tests.conftest import pairs
from tests.docs.markdown import has_model
from tests.golden.world import PREPARE, TRAIN
from tests.mining.invented import write_lines
from tests.tiny import tiny_encoder

README = Path(__file__).resolve().parents[2] / "README.md"
NOT_RUN = {"serve": "it waits for requests", "quickstart": "it trains for minutes"}
"""Verbs of rows that are not run, and why."""
FILES = {"FILES": "news.de.txt news.en.txt"}
"""Placeholders that are no file of this name."""
LANGUAGES = {"de": "deu_Latn", "ru": "rus_Cyrl"}


def commands():
    """Return the commands of the table, in its order."""
    table = README.read_text(encoding="utf-8").split("## What do you want to do?")[1]
    rows = [line for line in table.split("\n## ")[0].splitlines() if line.startswith("| ")]
    return [code for row in rows for code in re.findall(r"`(interlingua [^`]+)`", row)]


def write_files(folder, vocabulary):
    """Write what the rows name."""
    for name, seed in (("MODEL", 0), ("ONE", 1), ("OTHER", 2)):
        tiny_encoder(vocabulary, seed=seed).save(folder / name)
    rows = pairs("deu_Latn", 300, seed=0)
    tabs = [f"{a}\t{b}" for a, b in rows]
    write_lines(folder / "bitext/deu-eng.tsv", tabs)
    write_lines(folder / "heldout.de-en.tsv", tabs[200:])
    write_lines(folder / "new.yo-en.tsv", tabs)
    write_lines(folder / "book.de.txt", [a for a, _ in rows[:60]])
    write_lines(folder / "book.en.txt", [b for _, b in rows[:60]])
    # Most texts have no translation, so that a calibration finds wrong pairs, too.
    write_lines(folder / "news.de.txt", [a for a, _ in rows[:110]])
    write_lines(folder / "news.en.txt", [b for _, b in rows[90:200]])
    for side, code in enumerate(("de", "en")):
        for number in (0, 1):
            texts = [f"{row[side]}." for row in rows[30 * number : 30 * number + 30]]
            write_lines(folder / code / f"{number}.txt", texts)
        write_lines(folder / "texts" / f"{code}.txt", [row[side] for row in rows[:120]])
        write_lines(folder / "DATA" / f"{code}.txt", [row[side] for row in rows[:60]])
    write_lines(folder / "sentences.txt", [a for a, _ in rows[:20]])
    for language in LANGUAGES.values():
        lines = [f"{a}\t{b}" for a, b in pairs(language, 30, seed=2)]
        write_lines(folder / "DATA/heldout" / f"{language[:3]}-eng.tsv", lines)
    units = "".join(
        f'<tu><tuv xml:lang="de"><seg>{a}</seg></tuv><tuv xml:lang="en"><seg>{b}</seg></tuv></tu>'
        for a, b in rows[:40]
    )
    body = f'<tmx version="1.4"><header srclang="de"/><body>{units}</body></tmx>'
    (folder / "memory.tmx").write_text(body, encoding="utf-8")
    (folder / "prepare.toml").write_text(PREPARE, encoding="utf-8")
    short = TRAIN.replace("max_steps = 120", "max_steps = 4").replace(
        "eval_steps = 60", "eval_steps = 2"
    )
    (folder / "train.toml").write_text(short, encoding="utf-8")


def run(command):
    """Run a command as a shell would, and return its exit status and output."""
    words = shlex.split(FILES_PATTERN.sub(lambda found: FILES[found[0]], command))[1:]
    expanded = [name for word in words for name in sorted(glob.glob(word)) or [word]]
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main(expanded)
        except SystemExit as stop:
            return stop.code or 0, out.getvalue()
    return 0, out.getvalue()


FILES_PATTERN = re.compile(r"\b(?:" + "|".join(FILES) + r")\b")


@pytest.mark.skipif(not has_model(), reason="the default model is not installed")
def test_every_command_of_the_table_runs(tmp_path, monkeypatch, word_vocabulary):
    for package in ("lancedb", "onnx", "onnxruntime"):
        pytest.importorskip(package)
    write_files(tmp_path, word_vocabulary)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INTERLINGUA_DATA", raising=False)
    seen = set()
    for command in commands():
        verb = command.split()[1]
        seen.add(verb)
        if verb in NOT_RUN:
            continue
        status, output = run(command)
        assert status == 0, (command, output)
    assert seen == set(VERBS)
    written = {"pairs.tsv", "clean.tmx", "scores.json", "book.tsv", "vectors.npy", "debiased"}
    assert written <= set(os.listdir())
