"""There is one interface of what embeds texts, and all that is passed as one has it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import interlingua
from interlingua.encoder.backends.foreign import ForeignEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.protocol import TextEncoder

PACKAGE = Path(interlingua.__file__).parent


def protocols_with_encode():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef) or "Protocol" not in {
                ast.unparse(base) for base in node.bases
            }:
                continue
            methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            if methods & {"encode", "embed_texts"}:
                yield node.name


def test_one_protocol_says_what_embeds_texts():
    assert list(protocols_with_encode()) == ["TextEncoder"]


@pytest.mark.parametrize("kind", [Encoder, ForeignEncoder])
def test_encoders_take_what_the_protocol_has(kind):
    promised = inspect.signature(TextEncoder.encode).parameters
    taken = inspect.signature(kind.encode).parameters
    for name in list(promised)[2:]:  # without self and texts
        assert taken[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert taken[name].default == promised[name].default
