import time

import numpy as np
import pytest

from interlingua.errors import DataError, InterlinguaError
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


NOTES = []


def note(value):
    NOTES.append(value)
    time.sleep(0.2)


def notes(_):
    return list(NOTES)


def test_processes_that_are_warmed_up_have_called_the_function():
    with in_processes(2, "") as workers:
        workers.warm_up(note, 7)
        found = list(workers.run(notes, [(0,), (1,), (2,)]))
    # A process that starts late may have taken no call.
    assert any(found)
    assert all(set(of_task) <= {7} for of_task in found)
    assert not NOTES
    Workers().warm_up(note, 7)
    assert not NOTES


def test_errors_while_warming_up_are_the_caller_s_affair():
    with in_processes(2, "") as workers:
        workers.warm_up(fail, "a.txt")
        assert list(workers.run(abs, [(-1,)])) == [1]


def fail(name):
    raise DataError("no text", path=name, line=7)


def test_an_error_of_a_process_keeps_its_place():
    error = pytest.raises(InterlinguaError, match=r"a\.txt:7: no text")
    with in_processes(2, "") as workers, error:
        list(workers.run(fail, [("a.txt",)]))
