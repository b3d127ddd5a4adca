"""The tables of the names in configs and on the command line, with the place of each class.

Nothing registers itself on import, so the tables can be read without importing what they name. A
name means a class in one of three ways. The library's own classes have short names, in the tables
below. An installed package adds names by entry points, and each table has its own group of them.
Any other class is named by its place, ``package.module:Class``. ``resolve_name`` imports the class,
and only then is the code of a package run.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from interlingua.errors import ConfigError, InterlinguaError
from interlingua.errors import did_you_mean as did_you_mean


class Registry(dict[str, str]):
    """The names of one kind of class.

    Args:
        kind: name of its classes in messages.
        group: group of the entry points with which installed packages add names.
        base: place of the class or protocol that all these classes follow.
        needs: required attributes of a class.
        places: name -> place of each built-in class.
    """

    def __init__(
        self, kind: str, group: str, *, base: str, needs: Collection[str], places: Mapping[str, str]
    ) -> None:
        super().__init__(places)
        self.kind = kind
        self.group = group
        self.base = base
        self.needs = needs

    @property
    def names(self) -> list[str]:
        """Built-in names, then those of installed packages."""
        return list(dict.fromkeys([*self, *(entry.name for entry in installed(self.group))]))

    def is_place(self, name: str) -> bool:
        """Return whether a name is ``package.module:Class``, and not a known name with an argument.

        ``mteb:STS17``, for example, is a known name with an argument.
        """
        start, colon, _ = name.partition(":")
        return bool(colon) and start not in self.names

    def label(self, name: str) -> str:
        """Return the key under which options are set: the name, or the class of a module path."""
        if self.is_place(name):
            return name.rpartition(":")[2]
        return name


METHODS = Registry(
    "method",
    "interlingua.methods",
    base="interlingua.methods.objective:Objective",
    needs=("Config", "feeds_for"),
    places={
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
        "teacher_similarity": "interlingua.methods.teacher_similarity:TeacherSimilarity",
    },
)
TASKS = Registry(
    "task",
    "interlingua.tasks",
    base="interlingua.evaluation.task:Task",
    needs=("main_metric", "evaluate"),
    places={
        "tatoeba": "interlingua.evaluation.tasks.translation.tatoeba:Tatoeba",
        "xsim": "interlingua.evaluation.tasks.translation.xsim:XSim",
        "xsim_pp": "interlingua.evaluation.tasks.translation.xsim_pp:XSimPP",
        "xsim_pp_generated": "interlingua.evaluation.tasks.translation.xsim_pp:XSimPPGenerated",
        "ntrex_xsim": "interlingua.evaluation.tasks.translation.ntrex:NtrexXSim",
        "ntrex_f1": "interlingua.evaluation.tasks.translation.ntrex:NtrexF1",
        "flores_p_at_1": "interlingua.evaluation.tasks.translation.flores:FloresP1",
        "mixed_pool": "interlingua.evaluation.tasks.translation.mixed_pool:MixedPool",
        "robustness": "interlingua.evaluation.tasks.translation.robustness:Robustness",
        "sts17": "interlingua.evaluation.tasks.similarity.sts:STS17",
        "stsb": "interlingua.evaluation.tasks.similarity.sts:STSBenchmark",
        "sts12_16": "interlingua.evaluation.tasks.similarity.sts:STS12to16",
        "sick": "interlingua.evaluation.tasks.similarity.sts:Sick",
        "tydi_goldp": "interlingua.evaluation.tasks.retrieval.retrieval:TyDiGoldP",
        "xquad_r": "interlingua.evaluation.tasks.retrieval.retrieval:XQuADR",
        "lareqa": "interlingua.evaluation.tasks.retrieval.lareqa:LAReQA",
        "xquad": "interlingua.evaluation.tasks.retrieval.retrieval:XQuAD",
        "mr_tydi": "interlingua.evaluation.tasks.retrieval.retrieval:MrTyDi",
        "miracl": "interlingua.evaluation.tasks.retrieval.retrieval:Miracl",
        "beir": "interlingua.evaluation.tasks.retrieval.retrieval:Beir",
        "index": "interlingua.evaluation.tasks.retrieval.index_search:IndexSearch",
        "zero_shot_mldoc": "interlingua.evaluation.tasks.classification.zero_shot:ZeroShotMLDoc",
        "zero_shot_cls_v1": "interlingua.evaluation.tasks.classification.zero_shot:ZeroShotClsV1",
        "zero_shot_cls_v2": "interlingua.evaluation.tasks.classification.zero_shot:ZeroShotClsV2",
        "zero_shot_sib200": "interlingua.evaluation.tasks.classification.zero_shot:ZeroShotSib200",
        "zero_shot_umsab": "interlingua.evaluation.tasks.classification.zero_shot:ZeroShotUmsab",
        "zero_shot_folder": "interlingua.evaluation.tasks.classification.zero_shot:ZeroShotFolder",
        "few_shot_sib200": "interlingua.evaluation.tasks.classification.few_shot:FewShotSib200",
        "few_shot_umsab": "interlingua.evaluation.tasks.classification.few_shot:FewShotUmsab",
        "few_shot_folder": "interlingua.evaluation.tasks.classification.few_shot:FewShotFolder",
        "senteval": "interlingua.evaluation.tasks.classification.senteval:SentEval",
        "pair_mrpc": "interlingua.evaluation.tasks.similarity.pairs:PairMRPC",
        "pair_xnli": "interlingua.evaluation.tasks.similarity.pairs:PairXNLI",
        "pair_paws_x": "interlingua.evaluation.tasks.similarity.pairs:PairPawsX",
        "pair_folder": "interlingua.evaluation.tasks.similarity.pairs:PairFolder",
        "bucc_margin": "interlingua.evaluation.tasks.translation.bucc:BuccMargin",
        "bucc_best_f1": "interlingua.evaluation.tasks.translation.bucc:BuccBestF1",
        "bucc_mteb": "interlingua.evaluation.tasks.translation.bucc:BuccMTEB",
        "paracrawl_retrieval": (
            "interlingua.evaluation.tasks.translation.paracrawl:ParaCrawlRetrieval"
        ),
        "mteb": "interlingua.evaluation.tasks.mteb:MTEB",
    },
)


def _of_mteb(names: str) -> tuple[str, ...]:
    """Return tasks of mteb, with ``mteb:`` in front of the names that mteb uses."""
    return tuple(f"mteb:{name}" for name in names.split())


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
    # MEXMA's Tables 23 to 30
    "mexma_table23": _of_mteb(
        "AllegroReviews MassiveIntentClassification MassiveScenarioClassification PAC PolEmo2.0-IN"
        " PolEmo2.0-OUT"
    ),
    "mexma_table24": _of_mteb("PawsXPairClassification SprintDuplicateQuestions XNLI"),
    "mexma_table25": _of_mteb("PawsXPairClassification OpusparcusPC XNLI"),
    "mexma_table26": _of_mteb("PawsXPairClassification Cmnli Ocnli"),
    "mexma_table27": _of_mteb(
        "BIOSSES SICK-R STS12 STS13 STS14 STS15 STS16 STS17 STS22 STSBenchmark"
        " STSBenchmarkMultilingualSTS"
    ),
    "mexma_table28": _of_mteb("ATEC BQ LCQMC PAWSX STS22 STSB STSBenchmarkMultilingualSTS"),
    "mexma_table29": _of_mteb("SICKFr STS22 STSBenchmarkMultilingualSTS"),
    "mexma_table30": _of_mteb("CDSC-R SICK-R-PL STS22 STSBenchmarkMultilingualSTS"),
}
"""Groups of tasks by name; only those tasks of a group that have data are run."""
DEFAULT_MODEL = "mini"
"""The default model, which the package interlingua-mini provides; see ``storage.locate``."""
OWN_MODELS = (DEFAULT_MODEL, "nano")
"""Models that this project ships, each in a package interlingua-NAME of its own."""
MODELS = "interlingua.models"
"""Group of entry points with which packages provide models: ``NAME = "package:function"``. The
function returns a folder."""
BACKENDS = Registry(
    "backend",
    "interlingua.backends",
    base="interlingua.encoder.backends.foreign:ForeignEncoder",
    needs=("takes", "load"),
    places={
        "interlingua": "interlingua.encoder.backends.own:OwnEncoder",
        "sentence-transformers": (
            "interlingua.encoder.backends.sentence_transformers:SentenceTransformersEncoder"
        ),
        "onnx": "interlingua.encoder.backends.onnx:OnnxEncoder",
        "openai": "interlingua.encoder.backends.openai:OpenAIEncoder",
        "vectors": "interlingua.encoder.backends.vectors:VectorsEncoder",
        "function": "interlingua.encoder.backends.function:FunctionEncoder",
        "mapped": "interlingua.encoder.backends.mapped:MappedEncoder",
    },
)
ANALYSES = Registry(
    "analysis",
    "interlingua.analyses",
    base="interlingua.analysis.subject:Analyser",
    needs=("name", "run"),
    places={
        "agnosticism": "interlingua.analysis.agnosticism:Agnosticism",
        "token_matching": "interlingua.analysis.token_matching:TokenMatching",
        "attention_entropy": "interlingua.analysis.attention_entropy:AttentionEntropy",
        "word_order": "interlingua.analysis.word_order:WordOrder",
        "uniform_pooling": "interlingua.analysis.uniform_pooling:UniformPooling",
    },
)
FORMATS = Registry(
    "format",
    "interlingua.formats",
    base="interlingua.corpus.formats.bitext:PairFormat",
    needs=("read", "write"),
    places={
        "moses": "interlingua.corpus.formats.moses:Moses",
        "opus": "interlingua.corpus.formats.moses:OpusZip",
        "tsv": "interlingua.corpus.formats.tabular:Tsv",
        "jsonl": "interlingua.corpus.formats.tabular:Jsonl",
        "csv": "interlingua.corpus.formats.spreadsheet:Csv",
        "xlsx": "interlingua.corpus.formats.spreadsheet:Xlsx",
        "tmx": "interlingua.corpus.formats.tmx:Tmx",
        "gettext": "interlingua.corpus.formats.gettext:Gettext",
        "xliff": "interlingua.corpus.formats.localization.xliff:Xliff",
        "qt": "interlingua.corpus.formats.localization.qt:QtLinguist",
        "catalog": "interlingua.corpus.formats.localization.catalogs:Catalog",
        "subtitles": "interlingua.corpus.formats.localization.subtitle_pairs:Subtitles",
        "huggingface": "interlingua.corpus.formats.huggingface:HuggingFace",
    },
)
CHECKS = Registry(
    "check",
    "interlingua.checks",
    base="interlingua.mining.checks:Check",
    needs=("name", "score", "accept", "default_limit", "is_of_pair"),
    places={
        "language": "interlingua.mining.checks:LanguageIdentified",
        "script": "interlingua.mining.checks:ScriptShare",
        "length": "interlingua.mining.checks:LengthRatio",
        "empty": "interlingua.mining.checks:EmptySide",
        "copied": "interlingua.mining.checks:CopiedWords",
        "numbers": "interlingua.mining.checks:NumbersAgree",
        "duplicate": "interlingua.mining.checks:DuplicateSides",
        "hub": "interlingua.mining.checks:Hubness",
        "placeholders": "interlingua.mining.rules.placeholders:Placeholders",
        "tags": "interlingua.mining.rules.tags:InlineTags",
        "units": "interlingua.mining.rules.units:UnitsAgree",
        "ending": "interlingua.mining.rules.punctuation:EndPunctuation",
        "spaces": "interlingua.mining.rules.punctuation:OuterSpaces",
        "keys": "interlingua.mining.rules.keys:AcceleratorKeys",
        "translations": "interlingua.mining.rules.consistency:OneTranslation",
        "sources": "interlingua.mining.rules.consistency:OneSource",
        "glossary": "interlingua.mining.rules.glossary:GlossaryTerms",
    },
)


def installed(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, without importing their packages."""
    return sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def installed_model_entry(name: str) -> EntryPoint | None:
    """Return the entry point by which a package provides a model of that name.

    Return None if no package does, or if the name is a path.
    """
    # A path has no entry point, and needs no look-up in all installed packages.
    if os.path.basename(name) != name:
        return None
    return next((entry for entry in installed(MODELS) if entry.name == name), None)


def resolve_name(registry: Registry, name: str) -> Any:
    """Import the object that ``name`` refers to.

    Args:
        registry: one of the tables of this module.
        name: one of its names, or ``package.module:Class``.

    Returns:
        The class.

    Raises:
        ConfigError: there is no such name, and the nearest one is offered; or the class can't be
            imported, or is of another kind.
    """
    # The library's own names come first: no installed package can take their place.
    if name in registry:
        module, _, attribute = registry[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    place = name
    if not registry.is_place(name):
        place = _installed_place(registry, name)
    try:
        found = import_place(place)
    except ConfigError as error:
        start = name.partition(":")[0]
        if not difflib.get_close_matches(start[:100], registry.names, n=1, cutoff=0.6):
            raise
        # A misspelled name with an argument, such as mtab:STS17, looks like a place.
        raise ConfigError(
            f"unknown {registry.kind} {start!r}{did_you_mean(start, registry.names)}"
        ) from error
    if not isinstance(found, type):
        raise ConfigError(
            f"{registry.kind} {name!r}: expected a class like {registry.base}, found"
            f" {type(found).__name__}; name a class"
        )
    missing = [attribute for attribute in registry.needs if not hasattr(found, attribute)]
    if missing:
        raise ConfigError(
            f"{registry.kind} {name!r}: expected a class like {registry.base}, but it has no"
            f" {missing[0]}; implement it"
        )
    return found


def _installed_place(registry: Registry, name: str) -> str:
    """Return the place of the class for which an installed package defines this name."""
    # A package that is found twice on sys.path gives one place.
    places = {entry.value for entry in installed(registry.group) if entry.name == name}
    if len(places) > 1:
        raise ConfigError(
            f"{registry.kind} {name!r} is defined by several packages; use one of:"
            f" {', '.join(sorted(places))}"
        )
    if not places:
        raise ConfigError(f"unknown {registry.kind} {name!r}{did_you_mean(name, registry.names)}")
    return places.pop()


def import_place(place: str) -> Any:
    """Import ``package.module:Class`` or ``module:function``.

    A module in the working directory is found too.

    Raises:
        ConfigError: there is no such module, or nothing of that name in it, or its own code fails.
    """
    module, _, attribute = place.partition(":")
    if not (module and attribute):
        raise ConfigError(f"{place!r}: expected package.module:Class")
    # The working directory is searched last, so that no file in it hides an installed package.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        imported = importlib.import_module(module)
    except InterlinguaError:
        raise
    # A module's own code may raise anything.
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(
            f"{place!r}: cannot be imported ({reason}); check the spelling and the installed"
            " packages"
        ) from error
    try:
        return getattr(imported, attribute)
    except AttributeError as error:
        # Only names that the module defines are offered, no imported names.
        own = [
            name
            for name, value in vars(imported).items()
            if getattr(value, "__module__", None) == module
        ]
        raise ConfigError(
            f"{place!r}: the module has no {attribute!r}{did_you_mean(attribute, own)}"
        ) from error


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise an error that lists the valid values of an option, unless the value is valid.

    Raises:
        ConfigError: the value is not among the choices.
    """
    if value not in choices:
        raise ConfigError(f"unknown {option} {value!r}; use one of: {', '.join(choices)}")
