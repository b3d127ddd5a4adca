"""A commented TOML template: every key of a run with its meaning and default.

Both are taken from the declaration of the key. Python drops the text under a field, so this text is
read from the source code.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.config import config_to_toml
from interlingua.config.registry import METHODS, did_you_mean, resolve_name
from interlingua.errors import ConfigError
from interlingua.training.config import (
    EncoderConfig,
    MethodConfig,
    OptimizerConfig,
    RunConfig,
    ScheduleConfig,
)
from interlingua.training.feeds.data_config import DataConfig

WIDTH = 118
Values = Mapping[str, Mapping[str, Any]]
_CHOSEN_BY_RETRIEVAL = {"metric_for_best_model": "tatoeba_accuracy", "greater_is_better": True}
RECIPES: dict[str, tuple[str, Values]] = {
    "ems": (
        "From scratch: a small encoder on your own translations, which a CPU trains in hours.",
        {
            "data": {"corpus": "prepared", "temperature": 2.0},
            "encoder": {"preset": "ems-small"},
            "method": {"name": "ems", "exclude_repeats": True},
            "run": {"output": "runs/ems", "num_train_epochs": 3.0, "global_batch_size": 256,
            **_CHOSEN_BY_RETRIEVAL},
        },
    ),
    "mexma": (
        "A pretrained language model becomes a sentence encoder. Prepare the corpus with its"
        " vocabulary:\n"
        '[vocabulary] path = "hf:FacebookAI/xlm-roberta-base".',
        {
            "data": {"corpus": "prepared", "temperature": 2.0, "max_tokens": 128},
            "encoder": {"path": "hf:FacebookAI/xlm-roberta-base", "pooling": "cls"},
            "method": {"name": "mexma"},
            "run": {
                "output": "runs/mexma", "num_train_epochs": 3.0, "max_grad_norm": 1.0,
                **_CHOSEN_BY_RETRIEVAL,
            },
        },
    ),
    "finetune": (
        "A sentence encoder gets better on your kind of text. Prepare the corpus with its"
        " vocabulary and its prompt:\n"
        '[vocabulary] path = "hf:intfloat/multilingual-e5-small" and prompt = "query: "; see'
        ' docs/how-to/fine-tune.md.',
        {
            "data": {"corpus": "prepared", "temperature": 2.0, "max_tokens": 128},
            "encoder": {"path": "hf:intfloat/multilingual-e5-small"},
            "method": {"name": "infonce", "exclude_repeats": True},
            "run": {
                "output": "runs/finetuned", "num_train_epochs": 3.0, "max_grad_norm": 1.0,
                **_CHOSEN_BY_RETRIEVAL,
            },
        },
    ),
}  # fmt: skip
"""Settings of each kind of run, with a heading."""


def template(recipe: str) -> str:
    """Return the TOML of a kind of run, with every other key as a comment with its default.

    Args:
        recipe: ems, mexma or finetune.

    Raises:
        ConfigError: there is no such recipe.
    """
    if recipe not in RECIPES:
        # The message names the most similar recipe, or all of them if none is similar.
        raise ConfigError(f"--init: unknown recipe {recipe!r}{did_you_mean(recipe, list(RECIPES))}")
    heading, values = RECIPES[recipe]
    lines = [f"# {line}" for line in heading.splitlines()]
    lines += [
        "# Paths are relative to this file's folder. A key after # shows its default value;",
        "# remove the # to set another value.",
    ]
    method = resolve_name(METHODS, values["method"]["name"]).Config
    sections: tuple[tuple[str, type], ...] = (
        ("data", DataConfig),
        ("encoder", EncoderConfig),
        ("method", MethodConfig),
        ("method", method),
        ("optimizer", OptimizerConfig),
        ("schedule", ScheduleConfig),
        ("run", RunConfig),
    )
    for name, schema in sections:
        if schema is not method:
            lines += ["", "", f"[{name}]"]
        lines += _section(schema, values.get(name, {}))
    return "\n".join(lines) + "\n"


def field_texts(cls: type) -> dict[str, str]:
    """Return the text below each field of a dataclass and of the classes it inherits from."""
    found: dict[str, str] = {}
    # From the base to the class itself, so that its own texts replace inherited ones.
    for base in reversed(cls.__mro__[:-1]):
        declared = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(declared, ast.ClassDef)
        for field, text in itertools.pairwise(declared.body):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(text, ast.Expr):
                words = ast.literal_eval(text.value).replace("``", "`").split()
                found[field.target.id] = " ".join(words)
    return found


def _section(schema: type, values: Mapping[str, Any]) -> Iterator[str]:
    texts = field_texts(schema)
    for field in dataclasses.fields(schema):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name == "options" or dataclasses.is_dataclass(default):
            continue  # a separate section, which the reference documentation shows
        yield ""
        yield from textwrap.wrap(
            texts[field.name], WIDTH, initial_indent="# ", subsequent_indent="# "
        )
        if field.name in values:
            yield _assignment(field.name, values[field.name])
        elif default is None or default is dataclasses.MISSING:
            yield f"# {field.name} is not set"
        else:
            yield f"# {_assignment(field.name, default)}"


def _assignment(name: str, value: Any) -> str:
    # a config of only this key, so that the value is written as in a run's own file
    made = dataclasses.make_dataclass("Line", [name])(value)
    return config_to_toml(made).strip()
