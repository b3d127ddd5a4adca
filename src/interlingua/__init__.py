"""Language-agnostic sentence embeddings, from parallel text to a trained and measured encoder."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Type checkers see plain imports; at run time __getattr__ below does the same on first use.
if TYPE_CHECKING:
    from interlingua.corpus.segments.sentence_splitting import split as split
    from interlingua.encoder.encoder import Encoder as Encoder
    from interlingua.encoder.encoder import load as load
    from interlingua.errors import InterlinguaError as InterlinguaError
    from interlingua.retrieval.memory_index import Index as Index
    from interlingua.verbs.align import align as align
    from interlingua.verbs.analyse import analyse as analyse
    from interlingua.verbs.average import average as average
    from interlingua.verbs.calibrate import calibrate as calibrate
    from interlingua.verbs.compare import compare as compare
    from interlingua.verbs.debias import debias as debias
    from interlingua.verbs.documents import documents as documents
    from interlingua.verbs.embed import embed as embed
    from interlingua.verbs.evaluate import evaluate as evaluate
    from interlingua.verbs.export import export as export
    from interlingua.verbs.extend import extend as extend
    from interlingua.verbs.index import index as index
    from interlingua.verbs.info import info as info
    from interlingua.verbs.look import look as look
    from interlingua.verbs.mine import mine as mine
    from interlingua.verbs.prepare import prepare as prepare
    from interlingua.verbs.quickstart import quickstart as quickstart
    from interlingua.verbs.score import score as score
    from interlingua.verbs.search import search as search
    from interlingua.verbs.serve import serve as serve
    from interlingua.verbs.train import train as train

__version__ = "0.1.0"
__all__ = [
    "Encoder",
    "Index",
    "InterlinguaError",
    "__version__",
    "align",
    "analyse",
    "average",
    "calibrate",
    "compare",
    "debias",
    "documents",
    "embed",
    "evaluate",
    "export",
    "extend",
    "index",
    "info",
    "load",
    "look",
    "mine",
    "prepare",
    "quickstart",
    "score",
    "search",
    "serve",
    "split",
    "train",
]

# Public names are imported on first use, so that `import interlingua` does not import torch.
_HOMES = {
    "Encoder": "interlingua.encoder.encoder",
    "InterlinguaError": "interlingua.errors",
    "Index": "interlingua.retrieval.memory_index",
    "load": "interlingua.encoder.encoder",
    "split": "interlingua.corpus.segments.sentence_splitting",
}
"""Modules of the names that are not verbs. The module of a verb is in ``interlingua.verbs``."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        from interlingua.runtime.collection import no_collection

        with no_collection():
            module = importlib.import_module(_HOMES.get(name, f"interlingua.verbs.{name}"))
        return getattr(module, name)
    raise AttributeError(f"module 'interlingua' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
