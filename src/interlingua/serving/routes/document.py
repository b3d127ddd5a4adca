"""Descriptions of fields in the OpenAPI document beyond their types.

Languages and sentences are the same on every server. The names of the model and of its prompts and
the number of its dimensions differ. Their fields have a mark in the document that FastAPI makes,
and ``document_of_model`` replaces the marks by the values.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field, StrictInt, StrictStr, WithJsonSchema

from interlingua.config import languages
from interlingua.encoder.texts import VISIBLE
from interlingua.serving.model import ServedModel
from interlingua.serving.routes.json_route import WHOLE_NUMBER

MARK = "x-interlingua"
NOT_BLANK = VISIBLE.pattern
LANGUAGE_CODES = sorted(
    {code for one in languages.known() for code in (one.code, one.iso1) if code is not None}
)
LanguageField = Annotated[StrictStr, WithJsonSchema({"type": "string", MARK: "language"})]
Sentence = Annotated[StrictStr, WithJsonSchema({"type": "string", "pattern": NOT_BLANK})]
SentencesField = Annotated[
    list[StrictStr],
    Field(min_length=1, fail_fast=True),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "contains": {"type": "string", "pattern": NOT_BLANK},
        }
    ),
]
"""Sentences, of which at least one is not blank."""
Text = Annotated[StrictStr, WithJsonSchema({"type": "string", "pattern": NOT_BLANK})]
"""A text that is not blank; a blank one is refused where it is tokenized."""
Texts = Annotated[list[Text], Field(min_length=1, fail_fast=True)]
Dimensions = Annotated[StrictInt, Field(ge=1, json_schema_extra={MARK: "dimensions"}), WHOLE_NUMBER]
ModelName = Annotated[StrictStr, WithJsonSchema({"type": "string", MARK: "model"})]
IndexedLanguage = Annotated[StrictStr, WithJsonSchema({"type": "string", MARK: "indexed"})]
Prompt = Annotated[StrictStr, WithJsonSchema({"type": "string", MARK: "prompt"})]
ENDS_WITHOUT_WORD = r"(^|[\x00-/:-@\[-`{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7])$"
"""Pattern of the end of a prompt that is no name: ``EncodingSettings.prompt_text`` regards a text
that ends with a letter as a wrong name. Programs support different Unicode classes in a pattern, so
the characters of Latin-1 are listed; the server accepts all characters."""


def document_of_model(
    document: dict[str, Any],
    model: ServedModel,
    searched: Collection[str] = (),
    *,
    token_ids: bool = False,
) -> dict[str, Any]:
    """Return the document with the marked fields of one model.

    Args:
        document: of OpenAPI; it is modified in place.
        model: that is served.
        searched: codes of the languages of the index, if there is one.
        token_ids: whether the server accepts token ids instead of texts.
    """
    names = sorted(model.encoder.settings.prompts)
    prompt: dict[str, Any] = {"type": "string", "pattern": ENDS_WITHOUT_WORD}
    # An empty enum is not a schema.
    if names:
        prompt = {"anyOf": [{"enum": names}, prompt]}
    values = {
        "model": {"enum": list(model.names)},
        "prompt": prompt,
        "language": {"$ref": "#/components/schemas/Language"},
        "dimensions": {"maximum": model.dim},
        "token": {"exclusiveMaximum": model.encoder.vocabulary.size},
        "indexed": {"enum": sorted(filter(None, searched))},
        "input": {},
    }
    if not token_ids:
        forms = document["components"]["schemas"]["EmbeddingsRequest"]["properties"]["input"]
        values["input"] = {"anyOf": forms["anyOf"][:2]}  # the first two are texts
    _fill(document, values)
    document["components"]["schemas"]["Language"] = {
        "type": "string",
        # With an enum, testers would try each of the codes in each field.
        "pattern": f"^({'|'.join(LANGUAGE_CODES)})$",
        "description": "A language code; other common codes and English names are accepted too.",
    }
    return document


def _fill(node: Any, values: dict[str, dict[str, Any]]) -> None:
    """Replace the marks by their values."""
    if isinstance(node, dict):
        mark = node.pop(MARK, None)
        if mark is not None:
            node.update(values[mark])
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            _fill(part, values)
