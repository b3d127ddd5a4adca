"""What can be named in a config or on the command line, and where it lives. Nothing registers itself on import."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from interlingua.errors import ConfigError

METHODS: dict[str, str] = {
    "calibrated": "interlingua.methods.calibrated:Calibrated",
    "cross_encoder": "interlingua.methods.cross_encoder:CrossEncoder",
    "nli": "interlingua.methods.nli:NLI",
    "sts": "interlingua.methods.sts:STS",
    "ems": "interlingua.methods.ems:EMS",
    "mexma": "interlingua.methods.mexma:MEXMA",
    "distill": "interlingua.methods.distill:Distill",
    "infonce": "interlingua.methods.infonce:InfoNCE",
    "labse": "interlingua.methods.labse:LaBSE",
    "tlm": "interlingua.methods.tlm:TLM",
    "infoxlm": "interlingua.methods.infoxlm:InfoXLM",
    "dap": "interlingua.methods.dap:DAP",
    "retromae": "interlingua.methods.retromae:RetroMAE",
    "laser": "interlingua.methods.laser:LASER",
    "combination": "interlingua.methods.combination:Combination",
    "multilingual_ir": "interlingua.methods.multilingual_ir:MultilingualIR",
}
TASKS: dict[str, str] = {
    "tatoeba": "interlingua.evaluation.tasks.tatoeba:Tatoeba",
    "xsim": "interlingua.evaluation.tasks.xsim:XSim",
    "flores_p_at_1": "interlingua.evaluation.tasks.flores:FloresP1",
    "sts17": "interlingua.evaluation.tasks.sts:STS17",
    "stsb": "interlingua.evaluation.tasks.sts:STSBenchmark",
    "sts12_16": "interlingua.evaluation.tasks.sts:STS12to16",
    "sick": "interlingua.evaluation.tasks.sts:Sick",
    "tydi_goldp": "interlingua.evaluation.tasks.retrieval:TyDiGoldP",
    "xquad_r": "interlingua.evaluation.tasks.retrieval:XQuADR",
    "xquad": "interlingua.evaluation.tasks.retrieval:XQuAD",
    "mr_tydi": "interlingua.evaluation.tasks.retrieval:MrTyDi",
    "miracl": "interlingua.evaluation.tasks.retrieval:Miracl",
    "beir": "interlingua.evaluation.tasks.retrieval:Beir",
}
SUITES: dict[str, tuple[str, ...]] = {
    "sts": ("sts17", "stsb", "sts12_16", "sick"),
    "retrieval": ("tydi_goldp", "xquad_r", "xquad", "mr_tydi", "miracl", "beir"),
}
"""Names for several tasks, of which those are run whose data are there."""
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
