"""Verbs that start processes, in a script without ``if __name__ == "__main__"``."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys

import pytest

from tests.conftest import WORDS
from tests.tiny import tiny_encoder

TRAIN = {
    "data": {"corpus": "corpus"},
    "encoder": {"preset": "ems-tiny"},
    "method": {"name": "infonce"},
    "run": {
        "output": "run",
        "devices": 2,
        "max_steps": 2,
        "global_batch_size": 8,
        "micro_batch_size": 4,
        "device": "cpu",
    },
}
CORPUS = {
    "output": "corpus",
    "languages": ["de", "en"],
    "processes": 2,
    "validation": {"pairs": 5, "min_words": 1, "max_share": 0.3},
    "sources": [{"paths": ["a.de-en.tsv"]}],
    "vocabulary": {"path": "model"},
}
CALLS = {
    "embed": "interlingua.embed('model', ['a.de.txt'], output='v.npy', devices=2, device='cpu')",
    "evaluate": "interlingua.evaluate('model', 'beir', 'beir', output=None, languages='de',"
    " devices=2, cache='cache', device='cpu')",
    "prepare": f"interlingua.prepare({CORPUS})",
    "train": f"interlingua.prepare({CORPUS}); interlingua.train({TRAIN});"
    f" interlingua.train({TRAIN}, output='again', devices=2)",
}
SCRIPT = """
print("runs", flush=True)
import interlingua
{call}
print("ends", flush=True)
"""


@pytest.fixture
def folder(tmp_path, word_vocabulary):
    """A model, two texts, a bitext and a retrieval set."""
    tiny_encoder(word_vocabulary).save(tmp_path / "model")
    lines = [
        [f"{code}{n % WORDS} {code}{n * 7 % WORDS}" for n in range(60)] for code in ("de", "en")
    ]
    for code, side in zip(("de", "en"), lines, strict=True):
        (tmp_path / f"a.{code}.txt").write_text("".join(f"{line}\n" for line in side))
    rows = [f"{a}\t{b}\n" for a, b in zip(*lines, strict=True)]
    (tmp_path / "a.de-en.tsv").write_text("".join(rows))
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    for name, prefix in (("corpus", "p"), ("queries", "q")):
        items = [{"_id": f"{prefix}{n}", "text": f"de{n} de{n + 1}"} for n in range(6)]
        content = "".join(f"{json.dumps(item)}\n" for item in items)
        (tmp_path / "beir" / f"{name}.jsonl").write_text(content)
    judged = "".join(f"q{n}\tp{n}\t1\n" for n in range(6))
    (tmp_path / "beir" / "qrels" / "test.tsv").write_text(judged)
    return tmp_path


def start(folder, call):
    (folder / "script.py").write_text(SCRIPT.format(call=call))
    return subprocess.Popen(
        [sys.executable, "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


@pytest.mark.parametrize("verb", CALLS)
def test_a_script_without_a_guard_runs_once(folder, verb):
    if verb == "evaluate":
        pytest.importorskip("ir_measures")
    done = start(folder, CALLS[verb])
    out, error = done.communicate(timeout=240)
    assert done.returncode == 0, error[-2000:]
    assert re.findall(r"^(?:runs|ends)$", out, re.MULTILINE) == ["runs", "ends"]


def test_a_server_of_two_workers_runs_once(folder):
    pytest.importorskip("fastapi")
    process = start(folder, "interlingua.serve('model', port=0, workers=2, device='cpu')")
    line = process.stderr.readline()
    address = re.search(r"http://(\S+)", line)
    assert address, line
    connection = http.client.HTTPConnection(address[1], timeout=60)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert out.split().count("runs") == 1
