from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from interlingua.config import Between
from interlingua.config.options import (
    INPUT,
    OUTPUT,
    Options,
    argument,
    declared,
    filled,
    function_of,
    option,
)
from interlingua.errors import ConfigError
from interlingua.storage.limits import max_line_characters


@dataclasses.dataclass(frozen=True)
class Base(Options):
    """Options that two verbs have."""

    model: str | None = argument("The model.")
    share: Annotated[float, Between(0, 1)] = option(0.5, "Of all.", unit="0 to 1")
    max_line: int = option(100, "Characters.")


@dataclasses.dataclass(frozen=True)
class Verb(Base):
    """Options of an invented verb."""

    text: str | None = argument("The text.", None)
    output: str | None = option(None, "The file.", group=OUTPUT, is_required=True)
    language: str | None = option(None, "Its language.", group=INPUT)


def run(options: Verb) -> tuple[Verb, int]:
    """Run an example verb.

    More about it.

    Args:
        options: what to do.

    Returns:
        The arguments.
    """
    return options, max_line_characters()


def test_a_function_takes_the_fields_of_the_dataclass():
    verb = function_of(Verb, run, "verb")
    assert verb("m", "t", share=1.0)[0] == Verb("m", "t", share=1.0)
    names = "model text share max_line output language"
    assert list(inspect.signature(verb).parameters) == names.split()
    assert verb.__name__ == "verb"


@pytest.mark.parametrize(
    ("values", "named", "told"),
    [
        (["m"], {"shares": 1.0}, "'share'"),
        ([], {}, r"requires model.*interlingua.verb\(model, "),
        (["m", "t", "u"], {}, "2 values without a name, found 3"),
        (["m"], {"model": "n"}, "model is passed twice"),
        (["m"], {"share": "half"}, "share: .*a number.*'half'"),
        ([3], {}, "model: .*a text.* 3"),
        (["m", ["t"]], {}, "text: .*a text.*list"),
        (["m"], {"max_line": 1.5}, "max_line: .*a whole number.*1.5"),
        (["m"], {"output": np.zeros(3)}, "output: .*a text.*ndarray"),
    ],
)
def test_a_wrong_call_is_one_line_that_names_the_right_one(values, named, told):
    with pytest.raises(ConfigError, match=told) as error:
        function_of(Verb, run, "verb")(*values, **named)
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers():
    options, _ = function_of(Verb, run, "verb")("m", share=np.float32(0.5), max_line=np.int64(7))
    assert (options.share, options.max_line) == (0.5, 7)


@dataclasses.dataclass(frozen=True)
class WithDefault(Verb):
    """Options of a verb with a first argument that may be left out."""

    @classmethod
    def left_out(cls, first, given):
        return "default" if first == "text" and "model" not in given else None


def test_a_first_argument_that_was_left_out_is_put_in_front():
    verb = function_of(WithDefault, run, "verb")
    assert verb("text")[0] == WithDefault("default", "text")
    assert verb("m", "text")[0] == WithDefault("m", "text")
    assert verb(None, "text")[0] == WithDefault(None, "text")
    assert verb(model="m", text="text")[0] == WithDefault("m", "text")
    assert function_of(Verb, run, "verb")("text")[0] == Verb("text")


def test_the_docstring_describes_each_option_and_its_unit():
    text = function_of(Verb, run, "verb").__doc__
    options = "Args:\n    model: The model.\n    text: The text.\n"
    assert text.startswith(f"Run an example verb.\n\nMore about it.\n\n{options}")
    assert "    share: Of all. Unit: 0 to 1.\n" in text
    assert "options: what to do" not in text
    assert text.endswith("Returns:\n    The arguments.")


def test_the_line_limit_holds_while_the_function_runs():
    before = max_line_characters()
    assert function_of(Verb, run, "verb")("m", max_line=7)[1] == 7
    assert max_line_characters() == before


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_number_outside_its_range_is_refused(share):
    with pytest.raises(ConfigError, match="share"):
        Verb("m", share=share)


def test_arguments_come_first_then_options_by_group():
    names = "model text language output share max_line"
    assert [field.name for field, _ in declared(Verb)] == names.split()


def test_a_dataclass_is_filled_from_the_options_of_its_names():
    @dataclass(frozen=True)
    class Some(Options):
        rank: int = option(3)
        where: str | Path | None = option(None, kind=Path)
        other: str = option("x")

    @dataclass(frozen=True, kw_only=True)
    class Job:
        rank: int
        where: Path | None
        number: int = 5
        other: str

    job = Job(rank=3, where=Path("a/b"), number=5, other="y")
    assert filled(Job, Some(where="a/b"), other="y") == job
    assert filled(Job, Some(rank=4)).where is None
