"""A smaller vocabulary, which segments the texts that it was trimmed for as the full one does."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Int64

from interlingua.errors import ConfigError
from interlingua.runtime.portions import portions
from interlingua.vocabulary.vocabulary import Vocabulary

_CHUNK_TEXTS = 16_384


def ids_in_use(
    vocabulary: Vocabulary, texts: Iterable[str], *, language: str | None = None
) -> set[int]:
    """Return the ids of the entries needed to segment texts as the vocabulary does.

    These are the ids of the segmentation. For WordPiece they include pieces that were matched in
    words that finally became unknown: without these pieces, shorter matches might spell the word.
    """
    used: set[int] = set()
    # Only WordPiece needs the definition, which is large.
    model = vocabulary.definition["model"] if vocabulary.model_type == "WordPiece" else {}
    for chunk in portions(texts, _CHUNK_TEXTS):
        encoded = vocabulary.encode(chunk, language=language)
        used.update(*encoded)
        if vocabulary.model_type != "WordPiece" or vocabulary.unk_id not in used:
            continue
        for text, ids in zip(chunk, encoded, strict=True):
            if vocabulary.unk_id in ids:
                used |= _matched_in_unknown_words(vocabulary, model, text)
    return used


def id_counts(
    vocabulary: Vocabulary, texts: Iterable[str], *, language: str | None = None
) -> Int64[np.ndarray, " vocabulary"]:
    """Count the occurrences of each id in texts.

    Args:
        vocabulary: defines the ids.
        texts: in one language.
        language: code of that language, for vocabularies that segment by language.
    """
    counts = np.zeros(vocabulary.size, dtype=np.int64)
    for chunk in portions(texts, _CHUNK_TEXTS):
        encoded = vocabulary.encode(chunk, language=language)
        ids = np.fromiter(itertools.chain.from_iterable(encoded), np.int64)
        counts += np.bincount(ids, minlength=vocabulary.size)
    return counts


def most_frequent_ids(
    vocabulary: Vocabulary,
    counts: Mapping[str, Int64[np.ndarray, " vocabulary"]],
    size: int,
    *,
    temperature: float,
) -> set[int]:
    """Return the ids that a vocabulary of size ``size`` should keep.

    Languages are weighted as if text was sampled with weight n^(1/temperature), so that frequent
    pieces of a small language can compete with rare pieces of a large language. The single
    characters of all pieces that occur are kept as well, because removed pieces are replaced by
    shorter ones, and no character may become an unknown token.

    Args:
        vocabulary: defines the ids.
        counts: of each language, see ``id_counts``.
        size: number of ids to return at most, special tokens included.
        temperature: 1 keeps the languages' own shares; higher values bring them closer to equal
            ones.

    Raises:
        ConfigError: there are more special tokens and single characters than ``size``.
    """
    # Each language's shares of its tokens, times the weight of the language.
    expected = np.zeros(vocabulary.size)
    for of_language in counts.values():
        tokens = of_language.sum()
        if tokens:
            expected += of_language / tokens * tokens ** (1 / temperature)
    definition = vocabulary.definition
    entries = _entries(definition["model"])
    characters: set[str] = set()
    for piece, index in entries.items():
        if expected[index]:
            characters.update(piece)
    needed = {*vocabulary.special_ids, *_added_ids(definition)}
    needed |= {entries[character] for character in characters if character in entries}
    if len(needed) > size:
        raise ConfigError(
            f"vocabulary: max_size {size:,} is less than the {len(needed):,} required characters"
            " and special tokens; raise max_size"
        )
    # Stable: among equals the lower id comes first.
    by_frequency = np.argsort(-expected, kind="stable")
    in_use = by_frequency[: np.count_nonzero(expected)].tolist()
    others = [index for index in in_use if index not in needed]
    return needed | set(others[: size - len(needed)])


def trim_vocabulary(
    vocabulary: Vocabulary, ids: Iterable[int]
) -> tuple[Vocabulary, Int64[np.ndarray, " kept"]]:
    """Keep these ids, all special and added tokens, and those that segmentation needs.

    - Unigram: the best path stays the best among fewer paths. The entry with the lowest score is
      kept, because the unknown token's score depends on it.
    - BPE: the merges of an entry and their parts are kept, down to characters, so that the same
      merges are made in the same order. Byte-level alphabets are kept completely.
    - WordPiece: the longest match stays the longest among fewer matches.

    Args:
        vocabulary: the full one.
        ids: in use, see ``ids_in_use``.

    Returns:
        the trimmed vocabulary, and for each of its ids the old id: ``embeddings[kept_ids]`` are the
        rows of the trimmed vocabulary.

    Raises:
        ConfigError: the tokenizer's model is none of these.
    """
    definition = vocabulary.definition
    model = definition["model"]
    entries = _entries(model)
    kept = {*ids, *vocabulary.special_ids, *_added_ids(definition)}
    # Search the whole pre-tokenizer, which may be a sequence of several.
    byte_level = "ByteLevel" in json.dumps(definition["pre_tokenizer"])
    kept |= _needed(model, entries, kept, byte_level=byte_level)
    # New ids in the order of the old ones.
    kept_ids = np.asarray(sorted(kept), dtype=np.int64)
    new_ids = {old: new for new, old in enumerate(kept_ids.tolist())}
    _shrink(model, new_ids)
    for token in definition["added_tokens"]:
        token["id"] = new_ids[token["id"]]
    _renumber(definition["post_processor"], new_ids)
    trimmed = vocabulary.with_definition(definition)
    return trimmed, kept_ids


def _added_ids(definition: dict[str, Any]) -> list[int]:
    """Return the ids of the tokens that are outside of the model."""
    return [token["id"] for token in definition["added_tokens"]]


def _matched_in_unknown_words(vocabulary: Vocabulary, model: dict[str, Any], text: str) -> set[int]:
    """Return the pieces that WordPiece's greedy match found in words that became unknown."""
    tokenizer = vocabulary.tokenizer
    pieces = model["vocab"]
    # The tokenizer's own steps before the model.
    if tokenizer.normalizer:
        text = tokenizer.normalizer.normalize_str(text)
    words = [text]
    if tokenizer.pre_tokenizer:
        words = [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    matched = set()
    for word in words:
        # Words that are longer than the model's limit become unknown without any match.
        if len(word) > model["max_input_chars_per_word"]:
            continue
        prefix = ""
        start = 0
        while start < len(word):
            # Try the longest match first, because the model takes the first one that it finds.
            ends = range(len(word), start, -1)
            found = next((end for end in ends if prefix + word[start:end] in pieces), None)
            if found is None:
                break
            matched.add(pieces[prefix + word[start:found]])
            # All pieces after the first one are continuations.
            prefix = model["continuing_subword_prefix"]
            start = found
    return matched


def _entries(model: dict[str, Any]) -> dict[str, int]:
    """Return the id of each entry of the model."""
    if model["type"] == "Unigram":
        return {piece: index for index, (piece, _) in enumerate(model["vocab"])}
    if model["type"] in ("BPE", "WordPiece"):
        return dict(model["vocab"])
    raise ConfigError(
        f"a {model['type']} tokenizer cannot be trimmed; use a model with Unigram, BPE or WordPiece"
    )


def _needed(
    model: dict[str, Any], entries: dict[str, int], kept: set[int], *, byte_level: bool
) -> set[int]:
    """Return the ids that segmentation needs in order to reach the kept ones."""
    needed = set()
    # Any of the bytes <0x00> to <0xFF> may be needed for a character without a piece.
    if model.get("byte_fallback"):
        for piece, index in entries.items():
            if len(piece) == 6 and piece.startswith("<0x"):
                needed.add(index)
    if model["type"] == "Unigram":
        if model["unk_id"] is not None:
            needed.add(model["unk_id"])
        scores = [score for _, score in model["vocab"]]
        needed.add(scores.index(min(scores)))
    if model["type"] == "BPE":
        if byte_level:
            needed |= {index for piece, index in entries.items() if len(piece) == 1}
        needed |= _merge_closure(model, entries, kept | needed)
    return needed


def _merge_closure(model: dict[str, Any], entries: dict[str, int], ids: set[int]) -> set[int]:
    """Return the ids, and the parts from which they are merged, down to single characters."""
    parts: dict[str, set[str]] = {}
    for left, right, merged in _merges(model):
        parts.setdefault(merged, set()).update((left, right))
    pieces = {index: piece for piece, index in entries.items()}
    waiting = [pieces[index] for index in ids if index in pieces]
    reached = set(waiting)
    while waiting:
        for part in parts.get(waiting.pop(), ()):
            if part not in reached:
                reached.add(part)
                waiting.append(part)
    return {entries[piece] for piece in reached}


def _merges(model: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Yield left part, right part and result of each merge; older files write it as one string."""
    prefix = model.get("continuing_subword_prefix") or ""
    for merge in model["merges"]:
        if isinstance(merge, str):
            merge = merge.split(" ")
        left, right = merge
        yield left, right, left + right[len(prefix) :]


def _shrink(model: dict[str, Any], new_ids: dict[int, int]) -> None:
    if model["type"] == "Unigram":
        model["vocab"] = [entry for index, entry in enumerate(model["vocab"]) if index in new_ids]
        if model["unk_id"] is not None:
            model["unk_id"] = new_ids[model["unk_id"]]
        return
    vocab = {piece: new_ids[index] for piece, index in model["vocab"].items() if index in new_ids}
    model["vocab"] = vocab
    if model["type"] == "BPE":
        # A merge stays if its parts and its result have stayed.
        merges = zip(model["merges"], _merges(model), strict=True)
        model["merges"] = [merge for merge, pieces in merges if vocab.keys() >= set(pieces)]


def _renumber(processor: dict[str, Any] | None, new_ids: dict[int, int]) -> None:
    """Put new ids into a post-processor of any kind."""
    if processor is None:
        return
    for part in processor.get("processors", ()):
        _renumber(part, new_ids)
    for token in (processor.get("special_tokens") or {}).values():
        token["ids"] = [new_ids[index] for index in token["ids"]]
    for role in ("sep", "cls"):
        if role in processor:
            token, index = processor[role]
            processor[role] = [token, new_ids[index]]
