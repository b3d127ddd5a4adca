"""interlingua: language-agnostic sentence embeddings, from parallel text to a trained and measured encoder."""

from __future__ import annotations

import importlib
import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.adapt.average import average as average
    from interlingua.adapt.extend import extend as extend
    from interlingua.analysis.debias import debias as debias
    from interlingua.encoder.encoder import Encoder as Encoder
    from interlingua.errors import InterlinguaError as InterlinguaError
    from interlingua.evaluation.suite import evaluate as evaluate
    from interlingua.mining.api import align as align
    from interlingua.mining.api import mine as mine
    from interlingua.mining.api import score as score

    load = Encoder.load

__version__ = "0.1.0"
__all__ = [
    "Encoder",
    "InterlinguaError",
    "__version__",
    "align",
    "average",
    "debias",
    "evaluate",
    "extend",
    "load",
    "mine",
    "score",
]

# Public names are imported on first use, so that `import interlingua` does not import torch.
_HOMES = {
    "Encoder": "interlingua.encoder.encoder:Encoder",
    "InterlinguaError": "interlingua.errors:InterlinguaError",
    "align": "interlingua.mining.api:align",
    "average": "interlingua.adapt.average:average",
    "debias": "interlingua.analysis.debias:debias",
    "evaluate": "interlingua.evaluation.suite:evaluate",
    "extend": "interlingua.adapt.extend:extend",
    "load": "interlingua.encoder.encoder:Encoder.load",
    "mine": "interlingua.mining.api:mine",
    "score": "interlingua.mining.api:score",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module, _, attribute = _HOMES[name].partition(":")
        return operator.attrgetter(attribute)(importlib.import_module(module))
    raise AttributeError(f"module 'interlingua' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
