"""The smallest and the largest number that each option takes, found by trying.

``python -m tests.config.limits > tests/config/limits.json`` writes the table that
``test_limits.py`` compares with: for each option the next number below that is refused, the
smallest and the largest one that are accepted, and the next one above that is refused. Whole
numbers are tried up to 2^70 on both sides; null means that there is no such end.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from interlingua.config import from_mapping
from interlingua.config.bounds import bounds_of
from interlingua.config.registry import ANALYSES, BACKENDS, METHODS, TASKS, resolve_name
from interlingua.errors import InterlinguaError

Build = Callable[..., Any]
VERBS = (
    "align", "analyse", "average", "calibrate", "debias", "documents", "embed", "evaluate",
    "export", "extend", "index", "mine", "prepare", "quickstart", "score", "search", "serve",
    "train",
)  # fmt: skip
TRAIN: dict[str, dict[str, Any]] = {
    "data": {"corpus": "c"},
    "encoder": {"preset": "ems-tiny"},
    "method": {"name": "ems"},
    "optimizer": {},
    "schedule": {},
    "run": {"output": "o", "max_steps": 1},
}
FEEDS: dict[str, dict[str, Any]] = {
    "labeled": {"paths": ["a.tsv"], "kind": "nli"},
    "questions": {"paths": ["a.tsv"]},
    "monolingual": {"paths": ["en.txt"]},
    "forms": {},
    "caps": {},
}
# Other settings that an option requires to be read.
BESIDES: dict[str, dict[str, Any]] = {
    "train.optimizer.momentum": {"name": "lars"},
    "train.optimizer.trust_coefficient": {"name": "lars"},
    "train.run.max_steps": {"max_steps": None},
    "train.run.num_train_epochs": {"max_steps": None},
    "train.run.budget_seconds": {"max_steps": None},
    "prepare.vocabulary.max_size": {"path": "v", "trim": True},
    "method.ems.margin": {"contrastive": "ams"},
    "method.mexma.temperature": {"alignment": "contrastive"},
    "method.sts.sts_weight": {"cosent_weight": 1.0},
    "method.sts.temperature": {"cosent_weight": 1.0},
    "method.retromae.decoder_layers": {"enhanced": False},
    "method.laser.decoder_heads": {"decoder": "transformer"},
    "method.calibrated.english_weight": {"english_through_student": True},
    "verbs.average.max_pairs": {"pairs": "p", "sts": "s"},
    "verbs.average.max_loss": {"pairs": "p", "sts": "s"},
    "verbs.extend.replay_share": {"replay": "r"},
    "verbs.extend.replay_weight": {"replay": "r"},
    "verbs.extend.replay_sentences": {"replay": "r"},
    "verbs.extend.check_pairs": {"check": "c"},
}


def besides(key: str) -> Mapping[str, Any]:
    """Return the other settings that are required to try an option."""
    if key.endswith((".bm25_k1", ".bm25_b")):
        return {"bm25": True}
    return BESIDES.get(key, {})


def train(section: str) -> Build:
    from interlingua.training.config import train_config_from

    def build(**values: Any) -> Any:
        own = {**TRAIN[section], **values}
        own = {name: value for name, value in own.items() if value is not None}
        return train_config_from({**TRAIN, section: own})

    return build


def feed(name: str) -> Build:
    return lambda **values: train("data")(**{name: {**FEEDS[name], **values}})


def method(name: str) -> Build:
    return lambda **values: train("method")(name=name, **values)


def prepare(section: str) -> Build:
    from interlingua.preparation.config import PrepareConfig

    def build(**values: Any) -> Any:
        table: dict[str, Any] = {"output": "o", "sources": [{"paths": ["a.tsv"]}]}
        if section == "":
            table |= values
        elif section == "sources":
            table["sources"][0] |= values
        else:
            table[section] = values
        return from_mapping(PrepareConfig, table)

    return build


def mapped(kind: type, **base: Any) -> Build:
    return lambda **values: from_mapping(kind, {**base, **values})


def called(kind: Any, *arguments: Any, **base: Any) -> Build:
    return lambda **values: kind(*arguments, **{**base, **values})


def of_training() -> Iterator[tuple[str, type, Build]]:
    from interlingua.corpus.samples.sampling import Caps
    from interlingua.methods.heads.unmasking_head import UnmaskingHeadConfig
    from interlingua.training import config
    from interlingua.training.feeds import data_config
    from interlingua.training.silver_pairs import SilverConfig

    yield "train.data", data_config.DataConfig, train("data")
    yield "train.encoder", config.EncoderConfig, train("encoder")
    yield "train.optimizer", config.OptimizerConfig, train("optimizer")
    yield "train.schedule", config.ScheduleConfig, train("schedule")
    yield "train.run", config.RunConfig, train("run")
    yield "train.data.labeled", data_config.LabeledConfig, feed("labeled")
    yield "train.data.questions", data_config.QuestionsConfig, feed("questions")
    yield "train.data.monolingual", data_config.MonolingualConfig, feed("monolingual")
    yield "train.data.forms", data_config.FormsConfig, feed("forms")
    yield "train.data.caps", Caps, feed("caps")
    silver = {"gold": ["g"], "sentence_encoder": "s", "cross_encoder": "c"}
    yield "silver", SilverConfig, mapped(SilverConfig, **silver)
    for name in sorted(METHODS):
        yield f"method.{name}", resolve_name(METHODS, name).Config, method(name)
    head = lambda **values: method("mexma")(head=values)  # noqa: E731
    yield "method.mexma.head", UnmaskingHeadConfig, head


def of_preparation() -> Iterator[tuple[str, type, Build]]:
    from interlingua.corpus.cleaning.clean import CleanConfig
    from interlingua.preparation import config

    yield "prepare", config.PrepareConfig, prepare("")
    yield "prepare.sources", config.SourceConfig, prepare("sources")
    yield "prepare.clean", CleanConfig, prepare("clean")
    yield "prepare.deduplicate", config.DeduplicateConfig, prepare("deduplicate")
    yield "prepare.heldout", config.SplitConfig, prepare("heldout")
    yield "prepare.vocabulary", config.VocabularyConfig, prepare("vocabulary")


def of_use() -> Iterator[tuple[str, type, Build]]:
    from interlingua.alignment.sentence_alignment import AlignConfig
    from interlingua.analysis.debiasing.debias import DebiasOptions
    from interlingua.encoder.modeling.backbone import BackboneConfig
    from interlingua.mining.pair_cut import PairCut
    from interlingua.mining.pair_search import PairSearch
    from interlingua.mining.score import ScoreConfig

    yield "mine", PairSearch, called(PairSearch)
    yield "score", ScoreConfig, called(ScoreConfig)
    yield "align", AlignConfig, called(AlignConfig)
    yield "selection", PairCut, called(PairCut)
    yield "debias", DebiasOptions, called(DebiasOptions)
    sizes = {
        "vocab_size": 1000, "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 1,
        "intermediate_size": 12,
    }  # fmt: skip
    yield "backbone", BackboneConfig, called(BackboneConfig, **sizes)
    for name in sorted(ANALYSES):
        kind = resolve_name(ANALYSES, name)
        yield f"analysis.{name}", kind, mapped(kind)
    for name in sorted(TASKS):
        if name != "mteb":
            kind = resolve_name(TASKS, name)
            yield f"task.{name}", kind, mapped(kind)
    for name in sorted(BACKENDS):
        kind = getattr(resolve_name(BACKENDS, name), "Options", None)
        if kind is not None:
            yield f"backend.{name}", kind, mapped(kind)


def of_verbs() -> Iterator[tuple[str, type, Build]]:
    needed: dict[str, tuple[Any, dict[str, Any]]] = {
        "average": (("a", "b"), {"output": "o"}),
        "extend": (("m",), {"language": "isl", "pairs": "p", "output": "o"}),
        "debias": (("m", "t"), {"output": "o"}),
    }
    for name in sorted(VERBS):
        kind = getattr(importlib.import_module(f"interlingua.verbs.{name}"), name).options
        arguments, base = needed.get(name, ((), {}))
        for field in dataclasses.fields(kind):
            is_given = field.name in base or (len(arguments) > 0 and not field.kw_only)
            if field.default is dataclasses.MISSING and not is_given:
                base[field.name] = "x"
        yield f"verbs.{name}", kind, _verb(kind, arguments, base)


def _verb(kind: Any, arguments: tuple[Any, ...], base: Mapping[str, Any]) -> Build:
    positional = [field.name for field in dataclasses.fields(kind) if not field.kw_only]
    named = dict(zip(positional, arguments, strict=False))
    return called(kind, **{**named, **base})


def groups() -> Iterator[tuple[str, type, Build]]:
    yield from of_training()
    yield from of_preparation()
    yield from of_use()
    yield from of_verbs()


def numbers_of(kind: type) -> Iterator[tuple[str, type, bool]]:
    """Yield the options with numbers: name, type, and whether the number is a pair."""
    bounds = bounds_of(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        is_pair = field.name == "betas"
        plain = re.match(r"(int|float)\b", str(field.type))
        if field.name in bounds and (is_pair or "tuple" not in str(field.type)):
            yield field.name, bounds[field.name].kind, is_pair
        elif plain is not None:
            yield field.name, {"int": int, "float": float}[plain[1]], False


def accepts(build: Build, name: str, value: Any, is_pair: bool, besides: Mapping[str, Any]) -> bool:
    try:
        build(**{**besides, name: (value, value) if is_pair else value})
    except (InterlinguaError, TypeError, OverflowError):
        return False
    return True


def limits_of(
    build: Build, name: str, kind: type, is_pair: bool, besides: Mapping[str, Any]
) -> list[Any] | None:
    """Return the four numbers, None at ends where everything or nothing is accepted."""

    def holds(value: Any) -> bool:
        return accepts(build, name, value, is_pair, besides)

    tried = (
        [1, 2, 10, 64, 100, 128, 1000, 0, 100_000] if kind is int else [0.5, 1.0, 2.0, 100.0, 0.0]
    )
    start = next((value for value in tried if holds(value)), None)
    if start is None:
        return None
    low, high = (-(2**70), 2**70) if kind is int else (-math.inf, math.inf)
    below = (None, low) if holds(low) else boundary(holds, start, low, kind)
    above = (None, high) if holds(high) else boundary(holds, start, high, kind)
    return [*below, *reversed(above)]


def boundary(holds: Callable[[Any], bool], good: Any, bad: Any, kind: type) -> tuple[Any, Any]:
    """Return the adjacent refused and accepted numbers."""
    to, back = (int, int) if kind is int else (_order, _number)
    inside, outside = to(good), to(bad)
    while abs(inside - outside) > 1:
        middle = (inside + outside) // 2
        if holds(back(middle)):
            inside = middle
        else:
            outside = middle
    return back(outside), back(inside)


def _order(number: float) -> int:
    """Map numbers by size to integers without gaps."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _number(order: int) -> float:
    sign = -1.0 if order < 0 else 1.0
    number: float = struct.unpack("<d", struct.pack("<q", abs(order)))[0]
    return sign * number


def options() -> Iterator[tuple[str, Build, str, type, bool, Mapping[str, Any]]]:
    for label, kind, build in groups():
        for name, of, is_pair in numbers_of(kind):
            key = f"{label}.{name}"
            yield key, build, name, of, is_pair, besides(key)


def main() -> None:
    rows = [f'"{key}": {json.dumps(limits_of(*rest))}' for key, *rest in sorted_options()]
    print("{\n" + ",\n".join(rows) + "\n}")


def sorted_options() -> list[tuple[str, Build, str, type, bool, Mapping[str, Any]]]:
    """Return the options sorted by name."""
    return sorted(options(), key=lambda option: option[0])


if __name__ == "__main__":
    main()
