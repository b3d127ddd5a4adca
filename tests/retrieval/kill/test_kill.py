"""An index loses no reported row when its process dies, and the same command resumes."""

from __future__ import annotations

import multiprocessing
import shutil
import signal

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.retrieval.index_files import list_index_files, read_files
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import build_index
from tests.retrieval.kill.killed_run import BEGIN, END, Point, perform, run
from tests.retrieval.test_searcher import model, write_files  # noqa: F401

pytest.importorskip("lancedb")

POINTS = [
    # the first build: while its table is made, in its commits, in the index of words, in joining
    # the commits
    ("build", Point("create_table", 1, 0)),
    ("build", Point("_commit", 3, BEGIN)),
    ("build", Point("_commit", 5, 500)),
    ("build", Point("_commit", 15, END)),
    ("build", Point("create_index", 1, 100)),
    ("build", Point("optimize", 1, 2000)),
    # a file that changed and became shorter, and a new one
    ("add", Point("_commit", 1, 1800)),
    ("add", Point("_commit", 3, END)),
    ("add", Point("_delete_where", 1, 0)),
    ("add", Point("optimize", 1, 1000)),
    # by ids and by a condition
    ("delete", Point("_delete_where", 1, 0)),
    ("delete", Point("_delete_where", 2, BEGIN)),
    ("delete", Point("optimize", 1, 0)),
]


@pytest.fixture(scope="module")
def processes():
    """Start processes that have not imported LanceDB: its threads do not survive a fork."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["interlingua.retrieval.searcher", "pyarrow.dataset", "lance_namespace"]
    )
    return context


@pytest.fixture(scope="module")
def built(model, tmp_path_factory):  # noqa: F811
    """A folder with three files, an index of them, and a file that is not in it."""
    folder = tmp_path_factory.mktemp("built")
    build_index(model, write_files(folder), folder / "index")
    (folder / "fra_Latn.txt").write_text("Le chat\n" * 5)
    return folder


def texts_of(paths, index):
    """Map id -> text of the passages in files, in their order."""
    return {passage.id: passage.text for passage in read_files(list_index_files(paths, index))}


def rows(index):
    """Return id -> text and id -> vector of the rows, with distinct ids."""
    table = PassageIndex(index)._table.search().select(["id", "text", "vector"]).to_list()
    texts = {row["id"]: row["text"] for row in table}
    assert len(texts) == len(table)
    return texts, {row["id"]: row["vector"] for row in table}


def prepare(action, model, folder):  # noqa: F811
    """Return the command's arguments, the rows before and after, and the rows written, in order."""
    index = folder / "index"
    files = sorted(folder.glob("*_*.txt"))
    german, english, french, _ = files
    if action == "build":
        shutil.rmtree(index)
        written = texts_of(files, index)
        return [model, *files], {}, written, written
    before = texts_of([path for path in files if path != french], index)
    if action == "delete":
        ids = [f"{german.name}:{number}" for number in range(1, 7)]
        after = {
            name: text
            for name, text in before.items()
            if name not in ids and "tha_Thai" not in name
        }
        return [ids, "language = 'tha_Thai'"], before, after, {}
    lines = english.read_text(encoding="utf-8").splitlines()[:12]
    changed = [f"{line} Katze" for line in lines[:7]]
    english.write_text("\n".join(changed + lines[7:]), encoding="utf-8")
    written = texts_of([english, french], index)
    after = {name: text for name, text in before.items() if english.name not in name} | written
    return [english, french], before, after, written


@pytest.mark.parametrize(("action", "point"), POINTS)
def test_a_process_that_dies_loses_no_row(action, point, processes, model, built, tmp_path):  # noqa: F811
    folder = shutil.copytree(built, tmp_path / "project")
    index = folder / "index"
    given, before, after, written = prepare(action, model, folder)
    process = processes.Process(
        target=run, args=(action, index, given, point, tmp_path / "reports")
    )
    process.start()
    process.join()
    is_inside = isinstance(point.moment, int)
    assert -process.exitcode == (signal.SIGXFSZ if is_inside else signal.SIGKILL)

    kept = {} if point.operation == "create_table" else rows(index)[0]
    reported = max(map(int, (tmp_path / "reports").read_text().split()), default=0)
    assert all(kept[name] == written[name] for name in list(written)[:reported])
    for name in before | after | kept:  # each is as it was, or as it is to be
        assert kept.get(name) in {before.get(name), after.get(name)}

    result = perform(action, index, given)
    texts, vectors = rows(index)
    assert texts == after
    if action == "build":
        assert (result.added, result.replaced, result.unchanged) == (
            len(after) - len(kept),
            0,
            len(kept),
        )
    expected = Encoder.load(model).encode(list(after.values()))
    np.testing.assert_allclose([vectors[name] for name in after], expected, atol=1e-5)
    word = next(iter(after.values())).split()[0]
    found = {hit.id for hit in PassageIndex(index).matching(word, 100)}
    assert found == {name for name, text in after.items() if word in text.split()}
