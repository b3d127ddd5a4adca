from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.finite_vectors import check_finite
from interlingua.errors import DataError, TaskError


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_bad_row_is_named(bad):
    vectors = np.ones((5, 3), np.float32)
    check_finite(vectors, str)
    vectors[3, 1] = bad
    with pytest.raises(DataError, match=r"text 3; .*--dtype"):
        check_finite(vectors, lambda row: f"text {row}")
    vectors[4, 0] = bad
    with pytest.raises(TaskError, match="text 3 and 1 more; "):
        check_finite(vectors, lambda row: f"text {row}", error=TaskError)


def test_no_vector_at_all_is_fine():
    check_finite(np.ones((0, 3), np.float32), str)
