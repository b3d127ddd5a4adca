"""What can be named in a config or on the command line, and where it lives. Nothing registers itself on import."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Collection, Mapping
from typing import Any

from interlingua.errors import ConfigError

METHODS: dict[str, str] = {
    "anchor": "interlingua.methods.anchor:Anchor",
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
    "xsim_pp": "interlingua.evaluation.tasks.xsim_pp:XSimPP",
    "xsim_pp_generated": "interlingua.evaluation.tasks.xsim_pp:XSimPPGenerated",
    "ntrex_xsim": "interlingua.evaluation.tasks.ntrex:NtrexXSim",
    "ntrex_f1": "interlingua.evaluation.tasks.ntrex:NtrexF1",
    "flores_p_at_1": "interlingua.evaluation.tasks.flores:FloresP1",
    "mixed_pool": "interlingua.evaluation.tasks.mixed_pool:MixedPool",
    "sts17": "interlingua.evaluation.tasks.sts:STS17",
    "stsb": "interlingua.evaluation.tasks.sts:STSBenchmark",
    "sts12_16": "interlingua.evaluation.tasks.sts:STS12to16",
    "sick": "interlingua.evaluation.tasks.sts:Sick",
    "tydi_goldp": "interlingua.evaluation.tasks.retrieval:TyDiGoldP",
    "xquad_r": "interlingua.evaluation.tasks.retrieval:XQuADR",
    "lareqa": "interlingua.evaluation.tasks.lareqa:LAReQA",
    "xquad": "interlingua.evaluation.tasks.retrieval:XQuAD",
    "mr_tydi": "interlingua.evaluation.tasks.retrieval:MrTyDi",
    "miracl": "interlingua.evaluation.tasks.retrieval:Miracl",
    "beir": "interlingua.evaluation.tasks.retrieval:Beir",
    "zero_shot_mldoc": "interlingua.evaluation.tasks.zero_shot:ZeroShotMLDoc",
    "zero_shot_cls_v1": "interlingua.evaluation.tasks.zero_shot:ZeroShotClsV1",
    "zero_shot_cls_v2": "interlingua.evaluation.tasks.zero_shot:ZeroShotClsV2",
    "zero_shot_sib200": "interlingua.evaluation.tasks.zero_shot:ZeroShotSib200",
    "zero_shot_umsab": "interlingua.evaluation.tasks.zero_shot:ZeroShotUmsab",
    "zero_shot_folder": "interlingua.evaluation.tasks.zero_shot:ZeroShotFolder",
    "few_shot_sib200": "interlingua.evaluation.tasks.few_shot:FewShotSib200",
    "few_shot_umsab": "interlingua.evaluation.tasks.few_shot:FewShotUmsab",
    "few_shot_folder": "interlingua.evaluation.tasks.few_shot:FewShotFolder",
    "senteval": "interlingua.evaluation.tasks.senteval:SentEval",
    "pair_mrpc": "interlingua.evaluation.tasks.pairs:PairMRPC",
    "pair_xnli": "interlingua.evaluation.tasks.pairs:PairXNLI",
    "pair_paws_x": "interlingua.evaluation.tasks.pairs:PairPawsX",
    "pair_folder": "interlingua.evaluation.tasks.pairs:PairFolder",
    "bucc_margin": "interlingua.evaluation.tasks.bucc:BuccMargin",
    "bucc_best_f1": "interlingua.evaluation.tasks.bucc:BuccBestF1",
    "bucc_mteb": "interlingua.evaluation.tasks.bucc:BuccMTEB",
    "paracrawl_retrieval": "interlingua.evaluation.tasks.paracrawl:ParaCrawlRetrieval",
    "mteb": "interlingua.evaluation.tasks.mteb:MTEB",
}
SUITES: dict[str, tuple[str, ...]] = {
    "standard": ("tatoeba", "xsim", "mixed_pool"),
    "ntrex": ("ntrex_xsim", "ntrex_f1"),
    "sts": ("sts17", "stsb", "sts12_16", "sick"),
    "retrieval": ("tydi_goldp", "xquad_r", "lareqa", "xquad", "mr_tydi", "miracl", "beir"),
    "zero_shot_classification": (
        "zero_shot_mldoc",
        "zero_shot_cls_v1",
        "zero_shot_cls_v2",
        "zero_shot_sib200",
        "zero_shot_umsab",
        "zero_shot_folder",
    ),
    "few_shot_classification": ("few_shot_sib200", "few_shot_umsab", "few_shot_folder"),
    "pair_classification": ("pair_mrpc", "pair_xnli", "pair_paws_x", "pair_folder"),
    "bucc": ("bucc_margin", "bucc_best_f1", "bucc_mteb"),
}
"""Names for several tasks; those with data are run."""
BACKENDS: dict[str, str] = {
    "interlingua": "interlingua.encoder.backends.own:OwnEncoder",
    "sentence-transformers": "interlingua.encoder.backends.sentence_transformers:SentenceTransformersEncoder",
    "onnx": "interlingua.encoder.backends.onnx:OnnxEncoder",
    "openai": "interlingua.encoder.backends.openai:OpenAIEncoder",
    "vectors": "interlingua.encoder.backends.vectors:VectorsEncoder",
    "function": "interlingua.encoder.backends.function:FunctionEncoder",
    "mapped": "interlingua.encoder.backends.mapped:MappedEncoder",
}
ANALYSES: dict[str, str] = {
    "agnosticism": "interlingua.analysis.agnosticism:Agnosticism",
    "token_matching": "interlingua.analysis.token_matching:TokenMatching",
    "attention_entropy": "interlingua.analysis.attention_entropy:AttentionEntropy",
    "word_order": "interlingua.analysis.word_order:WordOrder",
    "uniform_pooling": "interlingua.analysis.uniform_pooling:UniformPooling",
}
FORMATS: dict[str, str] = {
    "moses": "interlingua.corpus.moses:Moses",
    "opus": "interlingua.corpus.moses:OpusZip",
    "tsv": "interlingua.corpus.tabular:Tsv",
    "jsonl": "interlingua.corpus.tabular:Jsonl",
    "csv": "interlingua.corpus.spreadsheet:Csv",
    "xlsx": "interlingua.corpus.spreadsheet:Xlsx",
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


def load(place: str) -> Any:
    """Imports what lies at ``package.module:Class``.

    Raises:
        ConfigError: there is no such module, or nothing of that name in it.
    """
    module, _, attribute = place.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{place!r} can't be imported ({error}); expected package.module:Class") from error


def did_you_mean(name: str, known: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    """The tail of an error message: the nearest known name, or all of them where none is near."""
    # The comparison takes time by the square of the length, and no name is that long.
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6) if len(name) <= 100 else []
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(sorted(known))}" if known else ""


def check_choice(option: str, value: str | None, choices: Collection[str]) -> None:
    """Says what an option may be.

    Raises:
        ConfigError: the value is given and is not among the choices.
    """
    if value is not None and value not in choices:
        raise ConfigError(f"{option} {value!r} is not one of {', '.join(choices)}")
