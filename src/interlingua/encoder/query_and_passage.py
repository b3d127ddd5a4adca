"""Roles of texts: the prompts with which an encoder embeds questions and passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from jaxtyping import Float32
from numpy import ndarray

Role = Literal["query", "passage"]
"""The role of a text in a search; some encoders embed the two differently."""
PROMPT_NAMES: Mapping[Role, Sequence[str]] = {
    "query": ("query",),
    "passage": ("passage", "document", "corpus"),
}
"""Names of models' prompts for each role."""
OWN_METHODS: Mapping[Role, str] = {"query": "encode_queries", "passage": "encode_passages"}


def role_prompt(
    encoder: Any, role: Role, given: Mapping[Role, str], prompt: str | None
) -> str | None:
    """Return the prompt to put before a question or a passage.

    Args:
        encoder: its own prompt for the role takes precedence over ``prompt``.
        role: of the text.
        given: the user's prompts by role; they take precedence over all others.
        prompt: the user's prompt for everything.
    """
    if role in given:
        return given[role]
    # The model's prompt for the role takes precedence over the prompt for everything.
    own = getattr(getattr(encoder, "settings", None), "prompts", {})
    return next((name for name in PROMPT_NAMES[role] if name in own), prompt)


def has_two_towers(encoder: Any) -> bool:
    """Return whether questions and passages are embedded by methods of their own.

    Such vectors are compared by inner products.
    """
    return all(hasattr(encoder, method) for method in OWN_METHODS.values())


def encode_in_role(
    encoder: Any, texts: Sequence[str], titles: Sequence[str] | None, role: Role, **options: Any
) -> Float32[ndarray, "n d"]:
    """Return one vector per text from the method of the role.

    Args:
        encoder: one with two towers.
        texts: questions, or passages without their titles.
        titles: of the passages.
        role: of the texts.
        options: language and batch_tokens.
    """
    # Questions have no titles, and their method has no such argument.
    extra = {}
    if role == "passage":
        extra = {"titles": titles}
    return getattr(encoder, OWN_METHODS[role])(list(texts), **extra, **options)  # type: ignore[no-any-return]
