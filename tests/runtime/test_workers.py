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


def fail(name):
    raise DataError("no text", path=name, line=7)


def test_an_error_of_a_process_keeps_its_place():
    error = pytest.raises(InterlinguaError, match=r"a\.txt:7: no text")
    with in_processes(2, "") as workers, error:
        list(workers.run(fail, [("a.txt",)]))
