import os
import time
import uuid

import numpy as np
import pytest

from interlingua.errors import DataError, InterlinguaError, MissingExtraError
from interlingua.runtime.workers import Workers, in_processes


def test_results_of_processes_come_in_the_order_of_the_tasks():
    tasks = [(np.full(1, number),) for number in range(40)]
    with in_processes(2, "") as workers:
        assert workers.slots == 2
        found = list(workers.run(np.negative, tasks))
        assert np.concatenate(found).tolist() == [-number for number in range(40)]
        assert list(workers.run(abs, [])) == []


def test_one_process_is_this_one():
    with in_processes(1, "") as workers:
        assert type(workers) is Workers
        assert list(workers.run(pow, iter([(2, 3), (3, 2)]))) == [8, 9]


def fail(name):
    raise DataError("no text", path=name, line=7)


def note(folder):
    (folder / str(os.getpid())).touch()
    # The other process takes the other call.
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.01)


def test_each_process_is_warmed_up(tmp_path):
    with in_processes(2, "") as workers:
        workers.warm_up(note, tmp_path)
        assert list(workers.run(abs, [(-1,)])) == [1]
    assert len(list(tmp_path.iterdir())) == 2
    Workers().warm_up(note, tmp_path / "missing")  # no other process, so no call


def lack(name):
    raise MissingExtraError(name, "extra")


@pytest.mark.parametrize("function", [fail, lack])
def test_errors_of_a_warm_up_do_not_end_the_processes(function):
    with in_processes(2, "") as workers:
        workers.warm_up(function, "a.txt")
        assert list(workers.run(abs, [(-1,)])) == [1]


def test_an_error_cancels_what_has_not_started(tmp_path):
    with pytest.raises(DataError), in_processes(1 + 1, "") as workers:
        for _ in range(20):
            workers.warm_up(linger, tmp_path)
        raise DataError("no text", path="a.txt")
    assert len(list(tmp_path.iterdir())) < 20


def linger(folder):
    time.sleep(0.1)
    (folder / uuid.uuid4().hex).touch()


def test_an_error_of_a_process_keeps_its_place():
    error = pytest.raises(InterlinguaError, match=r"a\.txt:7: no text")
    with in_processes(2, "") as workers, error:
        list(workers.run(fail, [("a.txt",)]))
