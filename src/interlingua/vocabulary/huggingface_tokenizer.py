"""Tokenizers of Hugging Face models: the definition and which token plays which role.

The definition is the content of ``tokenizer.json``. It does not specify which of its tokens is for
padding, which for masks and which for unknown text. These roles are read from
``special_tokens_map.json`` and ``tokenizer_config.json``, or, if there is only ``tokenizer.json``,
derived from the usual names.
Models without ``tokenizer.json`` are converted by transformers, if it is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from interlingua.errors import CheckpointError, DataError
from interlingua.storage.files import PathLike
from interlingua.storage.json_text import parse_json, read_json_text
from interlingua.storage.locate import hub_hint, hub_name, hub_snapshot
from interlingua.vocabulary.model_files import ROLES, TokenizerFile, read_file

_HUB_FILES = ["*.json", "*.model", "*.txt"]
# Tried if no configuration is next to the tokenizer.
USUAL_NAMES = {
    "pad_token": ("<pad>", "[PAD]"),
    "unk_token": ("<unk>", "[UNK]"),
    "mask_token": ("<mask>", "[MASK]", "<MASK>"),
}


def read_tokenizer(path_or_id: PathLike) -> tuple[str, dict[str, str]]:
    """Read a tokenizer.

    Args:
        path_or_id: a model directory, a ``tokenizer.json``, or ``hf:owner/name``.

    Returns:
        the content of its ``tokenizer.json``, without padding and truncation, and its special
        tokens by role.

    Raises:
        DataError: there is none, or it can't be read.
    """
    path = _folder(path_or_id)
    file = path
    if not path.is_file():
        file = path / "tokenizer.json"
    if file.is_file():
        definition = _read_object(file)
        special_tokens = _special_tokens(file.parent)
    else:
        definition, special_tokens = _from_transformers(path)
    # This library does both itself: it packs sentences, and reports those that it cuts.
    definition["padding"] = definition["truncation"] = None
    try:
        tokens = _tokens(definition)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DataError(
            f"not a tokenizer.json ({type(error).__name__}: {error}); download it again",
            path=file,
        ) from error
    # transformers gives such a result for a folder without a vocabulary file.
    if not file.is_file() and not tokens - set(special_tokens.values()):
        raise DataError(
            "the tokenizer has only special tokens and no vocabulary; download it again",
            path=path,
        )
    for role, names in USUAL_NAMES.items():
        usual = next((name for name in names if name in tokens), None)
        if role not in special_tokens and usual is not None:
            special_tokens[role] = usual
    # Drop roles whose token has no id, as they would cause an error later, at the first batch.
    known = {role: token for role, token in special_tokens.items() if token in tokens}
    return json.dumps(definition, ensure_ascii=False), known


def _folder(path_or_id: PathLike) -> Path:
    """Return the path, or the folder of the hub's model ``hf:owner/name``."""
    name = hub_name(path_or_id)
    if name is None:
        path = Path(path_or_id).expanduser()
        if path.exists():
            return path
        raise DataError(
            f"model folder or tokenizer.json not found; check the path{hub_hint(path_or_id)}",
            path=path_or_id,
        )
    try:
        return hub_snapshot(name, _HUB_FILES)
    except CheckpointError as error:
        raise DataError(str(error)) from error


def _special_tokens(folder: Path) -> dict[str, str]:
    """Read roles from ``special_tokens_map.json`` and ``tokenizer_config.json``.

    The latter takes precedence.
    """
    found: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            settings = _read_object(folder / name)
            read_file(TokenizerFile, settings, folder / name, error=DataError)
            for role in ROLES:
                token = settings.get(role)
                # The token may be a text, or an object with its options.
                if isinstance(token, dict):
                    token = token.get("content")
                if isinstance(token, str):
                    found[role] = token
    return found


def _from_transformers(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a tokenizer without ``tokenizer.json`` through transformers."""
    if not folder.is_dir():
        raise DataError("model folder or tokenizer.json not found; check the path", path=folder)
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), use_fast=True, trust_remote_code=False
        )
    except Exception as error:  # transformers raises a dozen kinds, all of them "no tokenizer here"
        reason = type(error).__name__
        if str(error).strip():
            reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"no tokenizer in the folder ({reason}); download the model again", path=folder
        ) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise DataError(
            "the tokenizer has no fast version; convert it to a tokenizer.json", path=folder
        )
    special_tokens = {
        role: str(getattr(tokenizer, role)) for role in ROLES if getattr(tokenizer, role, None)
    }
    return parse_json(backend.to_str()), special_tokens


def _tokens(definition: dict[str, Any]) -> set[str]:
    """Return all tokens of a definition."""
    # BPE and WordPiece models map pieces to ids; Unigram models list pieces with their scores.
    pieces = definition.get("model", {}).get("vocab", {})
    if not isinstance(pieces, dict):
        pieces = [piece for piece, _ in pieces]
    added = [token["content"] for token in definition.get("added_tokens", [])]
    return {*map(str, pieces), *added}


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(read_json_text(path))
    except (OSError, ValueError) as error:
        raise DataError(f"not JSON ({error}); download it again", path=path) from error
    if not isinstance(content, dict):
        raise DataError("expected a JSON object; download the file again", path=path)
    return content
