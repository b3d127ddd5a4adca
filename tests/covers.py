"""Few cases of a test with several parameters, in which all values, or all pairs of values, occur.

Most mistakes depend on one parameter or on two of them together (Kuhn, Wallace and Gallo 2004), so
a cover finds nearly what the full product finds, in a fraction of its cases.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations, product

import pytest


def cover(cases: Sequence[Mapping[str, Hashable]], *, strength: int) -> list[int]:
    """Return indices of cases that hold what all of them hold, in order.

    The choice is greedy: repeatedly the first case with the largest number of new combinations.

    Args:
        cases: the values of the parameters, by name.
        strength: how many parameters a combination has: 1 for each value of each parameter, 2 for
            each pair of values of two parameters.
    """
    left = [set(combinations(sorted(case.items()), min(strength, len(case)))) for case in cases]
    if all(len(found) <= 1 for found in left):
        return list(range(len(cases)))
    chosen = []
    while any(left):
        best = max(range(len(cases)), key=lambda i: (len(left[i]), -i))
        chosen.append(best)
        covered = set(left[best])
        left = [found - covered for found in left]
    return sorted(chosen)


def pairwise(**axes: Iterable[object] | Mapping[str, object]) -> pytest.MarkDecorator:
    """Parametrize a test over cases in which each pair of values of two parameters occurs.

    Args:
        axes: the values of each parameter; a mapping names them for the test's id. Values of
            ``variant`` go to the fixture of this name.
    """
    named = {
        name: values if isinstance(values, Mapping) else {str(value): value for value in values}
        for name, values in axes.items()
    }
    rows = [dict(zip(named, keys, strict=True)) for keys in product(*named.values())]
    parameters = [
        pytest.param(*(named[name][key] for name, key in row.items()), id="-".join(row.values()))
        for row in (rows[i] for i in cover(rows, strength=2))
    ]
    return pytest.mark.parametrize(
        list(named), parameters, indirect=["variant"] if "variant" in named else False
    )
