from __future__ import annotations

import dataclasses
import inspect
import pickle
from dataclasses import dataclass
from typing import Annotated

import pytest

from interlingua.config.bounds import AtLeast, Between
from interlingua.config.settings import CheckedSettings
from interlingua.errors import ConfigError
from tests.config.limits import groups


@dataclass(frozen=True, kw_only=True, slots=True)
class Search(CheckedSettings):
    folder: str
    neighbors: Annotated[int, AtLeast(1)] = 4
    shares: tuple[Annotated[float, Between(0, 1)], ...] = ()

    def __post_init__(self) -> None:
        if len(self.shares) > self.neighbors:
            raise ConfigError("more shares than neighbors")


@dataclass(frozen=True)
class Verb(CheckedSettings):
    text: str
    top: Annotated[int, AtLeast(1)] = dataclasses.field(default=10, kw_only=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folder": "f", "neighbor": 3}, "Search: .*'neighbor'.*'neighbors'"),
        ({}, "Search requires folder"),
        ({"folder": "f", "neighbors": 0}, "neighbors: .*1, found 0"),
        ({"folder": "f", "neighbors": "4"}, "neighbors: expected .*'4'"),
        ({"folder": "f", "neighbors": float("nan")}, "neighbors: expected"),
        ({"folder": "f", "shares": (0.5, 1.5)}, "shares: expected .*1.5"),
        ({"folder": "f", "neighbors": 1, "shares": (0.5, 0.5)}, "more shares"),
    ],
)
def test_a_wrong_argument_is_our_error(options, message):
    with pytest.raises(ConfigError, match=message):
        Search(**options)


def test_changes_copies_and_signatures_work_as_for_any_dataclass():
    search = Search(folder="f", shares=(0, 1))
    assert pickle.loads(pickle.dumps(search)) == search
    with pytest.raises(ConfigError, match="neighbors: expected"):
        dataclasses.replace(search, neighbors=0)
    assert list(inspect.signature(Search).parameters) == ["folder", "neighbors", "shares"]
    assert not hasattr(search, "__dict__")


def test_arguments_without_a_name():
    assert Verb("a", top=2) == Verb(text="a", top=2)
    for call, message in (
        (lambda: Verb("a", 2), "1 value without a name, found 2"),
        (lambda: Verb("a", text="b"), "text is passed twice"),
        (lambda: Verb("a", top=0), "top: expected"),
        (lambda: Verb(), "requires text"),
    ):
        with pytest.raises(ConfigError, match=message):
            call()


@pytest.mark.parametrize(("label", "kind"), [group[:2] for group in groups()])
def test_every_class_of_options_refuses_an_unknown_name(label, kind):
    known = dataclasses.fields(kind)
    wrong = f"{known[0].name}x" if known else "x"
    with pytest.raises(ConfigError, match=f"{kind.__name__}: unknown option '{wrong}'"):
        kind(**{wrong: 1})
