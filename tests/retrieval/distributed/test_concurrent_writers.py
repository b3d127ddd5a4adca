"""Two commands on one index at once: no row twice, none lost, no two models in one folder."""

from __future__ import annotations

import dataclasses
import logging
import multiprocessing
import threading

import pytest

from interlingua.errors import ConfigError, InterlinguaError
from interlingua.retrieval import passage_index, searcher
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import Added, PassageIndex
from interlingua.retrieval.searcher import add_to_index, build_index
from tests.retrieval.kill.killed_run import perform
from tests.retrieval.test_passage_index import SETTINGS, embed, invented
from tests.retrieval.test_searcher import model, write_files  # noqa: F401

pytest.importorskip("lancedb")


@pytest.fixture(scope="module")
def processes():
    """Start processes that have not imported LanceDB: its threads do not survive a fork."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["interlingua.retrieval.searcher", "pyarrow.dataset"])
    return context


def outcome(send, function, *arguments):
    """Send what the function returned, or the name of its error."""
    try:
        send.send(function(*arguments))
    except InterlinguaError as error:
        send.send(type(error).__name__)


def in_a_process(context, function, *arguments):
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=outcome, args=(send, function, *arguments))
    process.start()
    found = receive.recv()
    process.join()
    return found


def meanwhile(monkeypatch, module, name, action):
    """Run the action once, like a call of the module's function."""
    real = getattr(module, name)
    found = []

    def during(*arguments, **options):
        if not found:
            found.append(None)
            found[0] = action()
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, during)
    return found


def names(folder):
    return sorted(row["id"] for row in PassageIndex(folder)._table.search().to_list())


@pytest.fixture
def project(model, tmp_path):  # noqa: F811
    files = write_files(tmp_path)
    build_index(model, files[:1], tmp_path / "index")
    return files, tmp_path / "index"


@pytest.mark.parametrize("hook", ["load_index_model", "check_index_files"])
def test_a_file_that_two_commands_add_at_once_is_there_once(hook, project, processes, monkeypatch):
    files, folder = project
    other = meanwhile(
        monkeypatch,
        searcher,
        hook,
        lambda: in_a_process(processes, perform, "add", folder, files[1:]),
    )
    assert add_to_index(folder, files[1:]) == Added(0, 0, 40)
    assert other == [Added(40, 0, 0)]
    assert len(names(folder)) == len(set(names(folder))) == 60


def test_rows_that_are_deleted_while_a_model_is_read_are_added_again(
    project, processes, monkeypatch
):
    files, folder = project
    other = meanwhile(
        monkeypatch,
        searcher,
        "load_index_model",
        lambda: in_a_process(processes, perform, "delete", folder, [[], "1 = 1"]),
    )
    assert add_to_index(folder, files[:1]) == Added(20, 0, 0)
    assert other == [20]
    assert len(names(folder)) == 20


def build(folder, digest):
    settings = dataclasses.replace(SETTINGS, digest=digest)
    index = PassageIndex.create(folder, settings)
    index.add([Passage(f"{digest}:{n}", f"{n}") for n in range(3)], embed)
    return digest


def test_of_two_builds_into_one_new_folder_one_is_refused(tmp_path, processes, monkeypatch):
    folder = tmp_path / "index"
    other = meanwhile(
        monkeypatch,
        passage_index,
        "write_record",
        lambda: in_a_process(processes, build, folder, "other"),
    )
    build(folder, "one")
    assert other == ["ConfigError"]
    assert PassageIndex(folder).settings.digest == "one"
    assert names(folder) == ["one:0", "one:1", "one:2"]


def test_an_index_that_was_replaced_by_one_of_another_model_is_refused(tmp_path):
    index = PassageIndex.create(tmp_path / "index", SETTINGS)
    (index.folder / "index.json").unlink()
    build_again = dataclasses.replace(SETTINGS, digest="d2")
    passage_index._write_settings(index.folder, build_again)
    with pytest.raises(ConfigError, match="the model"):
        index.add(invented(1), embed)


def test_threads_that_add_the_same_passages_add_them_once(tmp_path):
    folder = tmp_path / "index"
    PassageIndex.create(folder, SETTINGS).add(invented(5), embed)
    found = []
    opened = threading.Barrier(4)

    def add():
        index = PassageIndex(folder)
        opened.wait()
        while True:
            try:
                found.append(index.add(invented(40), embed))
                return
            except ConfigError:  # another one writes
                continue

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.added for one in found) == [0, 0, 0, 35]
    assert len(names(folder)) == 40


def test_rows_of_one_id_are_joined_by_the_next_writer(tmp_path, caplog):
    index = PassageIndex.create(tmp_path / "index", SETTINGS)
    index.add(invented(5), embed)
    rows = index._table.search().limit(10).to_arrow()
    index._table.add(rows)
    with caplog.at_level(logging.WARNING):
        assert index.add(invented(2), embed) == Added(0, 0, 2)
    assert "5 rows" in caplog.text
    assert names(index.folder) == [f"p{n}" for n in range(5)]
