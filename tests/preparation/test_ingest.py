import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.errors import DataError, InterlinguaError
from interlingua.preparation.config import SourceConfig
from interlingua.preparation.ingest import ingest
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.sources import Chunk
from interlingua.runtime.workers import in_processes
from tests.preparation.conftest import config_for, sentences, write_tsv

ROOT = Path(__file__).resolve().parents[2]


def test_shards_hold_clean_text_its_keys_and_its_words(tmp_path):
    broken = [("gleich", "gleich"), ("", "x")]
    rows = [("Ein  Haus", "a house"), *broken, ("Drei kleine Wörter", "words")]
    path = write_tsv(tmp_path / "de-en.a.tsv", rows)
    config = config_for(tmp_path, tmp_path, sources=(SourceConfig(paths=(path,)),))
    (shard,), (counts,) = ingest(config, tmp_path, StageProgress(), BadLines())
    sides = (["Ein Haus", "Drei kleine Wörter"], ["a house", "words"])
    assert list(shard.blocks(np.ones(2, bool))) == [sides]
    assert shard.source_keys.tolist() == text_keys(sides[0]).tolist()
    assert shard.target_keys.tolist() == text_keys(sides[1]).tolist()
    assert shard.words.tolist() == [2, 1]
    pair = ("deu_Latn", "eng_Latn")
    assert counts.read == {pair: 4}
    assert counts.dropped == {pair: {"identical": 1, "empty": 1}}
    assert counts.files[0].bytes == path.stat().st_size


def test_two_processes_do_what_one_does(tmp_path, corpus):
    results = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        config = config_for(tmp_path, corpus, processes=processes)
        with in_processes(processes, "") as workers:
            shards, counts = ingest(config, folder, StageProgress(), BadLines(), workers)
        found = [(shard.language_pair, shard.source_index, shard.rows) for shard in shards]
        results.append((found, counts, {path.name: path.read_bytes() for path in folder.iterdir()}))
    assert results[0] == results[1]


def test_words_of_a_pair_without_english_are_those_of_the_longer_side(tmp_path):
    path = write_tsv(tmp_path / "de-fr.a.tsv", [("Ein kleines Haus", "une maisonette")])
    config = config_for(tmp_path, tmp_path, sources=(SourceConfig(paths=(path,)),))
    assert ingest(config, tmp_path, StageProgress(), BadLines())[0][0].words.tolist() == [3]


def test_a_broken_file_is_told_with_its_line(tmp_path, corpus):
    rows = [(german, english) for english, german, _ in sentences(30, seed=3)]
    path = write_tsv(tmp_path / "de-en.x.tsv", [*rows, ("no tab", "a\tb")])
    config = config_for(tmp_path, corpus, sources=(SourceConfig(paths=(path,)),))
    wanted = pytest.raises(DataError, match=r"de-en\.x\.tsv:31: found 3 columns, expected 2")
    with in_processes(2, "use one") as workers, wanted:
        ingest(config, tmp_path, StageProgress(), BadLines(), workers)


def test_a_killed_process_is_told_in_one_line(tmp_path, corpus, monkeypatch):
    class Killer:
        def __reduce__(self):
            return os._exit, (1,)  # what unpickling this does in the worker

    monkeypatch.setattr(
        "interlingua.preparation.ingest.read_chunks",
        lambda *arguments, **options: iter([Chunk(0, Killer(), [], [])]),
    )
    config = config_for(tmp_path, corpus)
    with (
        in_processes(2, "use one") as workers,
        pytest.raises(InterlinguaError, match=r"killed.*; use one"),
    ):
        ingest(config, tmp_path, StageProgress(), BadLines(), workers)


PARENT = """
import sys, time
from pathlib import Path
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.preparation import ingest
from interlingua.preparation.progress import StageProgress
from interlingua.runtime.workers import Workers, in_processes
from tests.preparation.conftest import config_for

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    chunks = ingest._chunks

    def waiting(*arguments):
        yield from chunks(*arguments)
        print("read", flush=True)
        time.sleep(600)

    ingest._chunks = waiting
    with in_processes(2, "use one") as workers:
        config = config_for(folder, folder / "data")
        ingest.ingest(config, folder, StageProgress(), BadLines(), workers)
"""


def children_of(pid):
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(status.parent.name))
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_workers_end_with_a_killed_parent(tmp_path, corpus):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["src", "."]), "OMP_NUM_THREADS": "1"}
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env=environment,
    )
    parent.stdout.readline()
    children = children_of(parent.pid)
    assert len(children) >= 2
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while (left := [pid for pid in children if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in left:  # so that a failing test leaves none either
        os.kill(pid, signal.SIGKILL)
    parent.stdout.close()
    assert left == []


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_script_without_a_main_guard_runs_once_and_needs_none(tmp_path):
    rows = [(f"Satz {number}", f"sentence {number}") for number in range(50)]
    write_tsv(tmp_path / "a.de-en.tsv", rows)
    script = tmp_path / "script.py"
    script.write_text(
        "print('runs', flush=True)\n"
        "import interlingua\n"
        "made = interlingua.prepare({'output': 'corpus', 'languages': ['de', 'en'],"
        " 'processes': 2, 'sources': [{'paths': ['a.de-en.tsv']}],"
        " 'vocabulary': {'size': 120}})\n"
        "print(made.output)\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["runs", "corpus"]
