"""Types of methods' options, with bounds that no run exceeds.

``_UNBOUNDED`` applies to numbers without a bound in their types, in a ``Config`` from outside this
repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from interlingua.config import MANY, NEARLY_ONE, Above, Between, ValueOrigin, convert_to_type

T = TypeVar("T")

Dim = Annotated[int, Between(1, 65_536)]
"""Width of a vector."""
Layers = Annotated[int, Between(1, 1_000)]
"""Layers of a head or decoder."""
Heads = Annotated[int, Between(1, 1_024)]
"""Attention heads of a layer."""
Size = Annotated[int, Between(1, 2**31)]
"""Rows of a bank or queue."""
Steps = Annotated[int, Between(1, MANY)]
"""Optimizer steps."""
Weight = Annotated[float, Between(0, 1e6)]
"""Weight of a term of the loss; 0 = without it."""
PositiveWeight = Annotated[float, Above(0, 1e6)]
"""Weight of a term that another option switches off."""
Temperature = Annotated[float, Between(1e-6, 1e6)]
"""Divisor of similarities."""
Dropout = Annotated[float, Between(0, NEARLY_ONE)]
"""Probability of zeroing an element."""
Share = Annotated[float, Above(0, 1)]
"""Share of tokens or layers."""
_UNBOUNDED = Between(-MANY, MANY)
"""Bound for numbers whose types have no bound."""


def read_options(config: type[T], table: Mapping[str, Any], *, where: str) -> T:
    """Read a method's options.

    Args:
        config: the method's ``Config``, which may be from a package outside of this repository.
        table: the options.
        where: name of the table in errors.

    Raises:
        ConfigError: see ``interlingua.config.load_config``.
    """
    return convert_to_type(config, table, ValueOrigin(place=where, numbers=_UNBOUNDED))
