"""What can be named in a config or on the command line, and where it lives. Nothing registers itself on import."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from interlingua.errors import ConfigError

METHODS: dict[str, str] = {
    "ems": "interlingua.methods.ems:EMS",
}
TASKS: dict[str, str] = {
    "tatoeba": "interlingua.evaluation.tasks.tatoeba:Tatoeba",
    "xsim": "interlingua.evaluation.tasks.xsim:XSim",
}
FORMATS: dict[str, str] = {
    "moses": "interlingua.corpus.moses:Moses",
    "opus": "interlingua.corpus.moses:OpusZip",
    "tsv": "interlingua.corpus.tabular:Tsv",
    "jsonl": "interlingua.corpus.tabular:Jsonl",
    "tmx": "interlingua.corpus.tmx:Tmx",
    "gettext": "interlingua.corpus.gettext:Gettext",
    "huggingface": "interlingua.corpus.huggingface:HuggingFace",
}


def resolve(registry: Mapping[str, str], name: str) -> Any:
    """Imports what ``name`` stands for.

    Args:
        registry: one of the tables of this module, name -> ``"module:attribute"``.
        name: a key of it.

    Returns:
        The class or function.

    Raises:
        ConfigError: there is no such name; the nearest one is offered.
    """
    if name not in registry:
        raise ConfigError(f"unknown name {name!r}{did_you_mean(name, registry)}")
    module, _, attribute = registry[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def did_you_mean(name: str, known: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    """The tail of an error message: the nearest known name, or all of them where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(sorted(known))}" if known else ""
