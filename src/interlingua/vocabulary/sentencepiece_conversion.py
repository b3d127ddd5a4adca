"""Conversion of a SentencePiece model to an equal ``tokenizers.Tokenizer``.

Both give the same ids for every text in NFKC. The two libraries do the same three things: normalize
with a compiled character map, write spaces as U+2581 and add one in front, and segment. Only
normalization needs care: SentencePiece replaces the longest match at each place, ``tokenizers`` the
shortest match of each grapheme, which loses the accent after a letter that is mapped. So if a model
normalizes, two steps are added. The text is first converted to NFKC, after which no match is longer
than a character. Then graphemes are split by a control character, which is removed after the map.
Text that was not in NFKC gets the ids of its NFKC form. If two unigram segmentations have equal
scores, rounding may decide differently (in about 20 of 500,000 sentences).

One difference remains: a text that starts or ends with U+2581, SentencePiece's sign for a space. If
the tokenizer's ``encode_special_tokens`` is set, both treat the names of special tokens in a text
as ordinary letters.

transformers converts models too, but keeps their character map unchanged, so its tokenizers have
the difference in normalization that is described above.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from interlingua.errors import DataError

SPACE = "▁"
# Far below any real score, so that a control symbol or byte is never the best segmentation of a
# text that contains its name.
CONTROL_SCORE = -1e4
# A control character is never part of a grapheme, so it separates the text before and after it.
GRAPHEME_BREAK = "\x01"


class PieceType(IntEnum):
    """Kinds of pieces, numbered as in sentencepiece_model.proto."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Piece(NamedTuple):
    """One entry of a SentencePiece vocabulary."""

    text: str
    score: float
    type: PieceType


class SentencePieceModel(NamedTuple):
    """The parts of a SentencePiece model file that segmentation needs."""

    pieces: tuple[Piece, ...]
    algorithm: str
    """``unigram`` or ``bpe``."""
    character_map: bytes
    """Compiled normalization rules (Darts-clone trie); empty for the identity."""


def read_model(model: bytes) -> SentencePieceModel:
    """Read a SentencePiece model.

    Raises:
        DataError: it is not a SentencePiece model, or its algorithm is neither unigram nor bpe.
    """
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise DataError(
            f"not a SentencePiece model ({error}); download or train it again"
        ) from error
    # Numbers of fields as in sentencepiece_model.proto. In ModelProto, 2 is trainer_spec and 3 is
    # normalizer_spec. In TrainerSpec, 3 is model_type; if it is absent, the type is unigram.
    trainer = _message(model, 2)
    normalizer = _message(model, 3)
    model_type = next((value for key, value in _fields(trainer) if key == 3), 1)
    algorithm = {1: "unigram", 2: "bpe"}.get(model_type)
    if algorithm is None:
        raise DataError(
            "the SentencePiece model is neither unigram nor bpe; train one of these types"
        )
    pieces = []
    for index in range(processor.get_piece_size()):
        kind = _piece_type(processor, index)
        pieces.append(Piece(processor.id_to_piece(index), processor.get_score(index), kind))
    # NormalizerSpec's precompiled_charsmap.
    return SentencePieceModel(tuple(pieces), algorithm, _message(normalizer, 2))


def has_default_settings(model: bytes) -> bool:
    """Return whether a SentencePiece model treats spaces in the default way.

    The default is: one space is added in front, words are separated by single spaces, no piece
    crosses a space, and the user has defined no symbols.
    """
    # Numbers of fields as in sentencepiece_model.proto; absent = default.
    trainer = dict(_fields(_message(model, 2)))
    normalizer = dict(_fields(_message(model, 3)))
    # NormalizerSpec's add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces.
    is_normalizer_default = all(normalizer.get(number, 1) for number in (3, 4, 5))
    # TrainerSpec's split_by_whitespace; treat_whitespace_as_suffix, allow_whitespace_only_pieces,
    # user_defined_symbols.
    splits = trainer.get(22, 1)
    others = any(trainer.get(number) for number in (24, 26, 31))
    return bool(is_normalizer_default and splits and not others)


def tokenizer_json(model_file: bytes, *, special_tokens: Sequence[str]) -> str:
    """Return the content of a ``tokenizer.json`` that segments as a SentencePiece model does.

    Args:
        model_file: the SentencePiece model.
        special_tokens: pieces to declare as special tokens. As in every Hugging Face tokenizer, the
            name of such a piece in a text yields its id, unless ``encode_special_tokens`` is set. A
            ``tokenizer.json`` can't hold this setting; ``Vocabulary`` sets it. Text never yields
            the ids of control symbols that are not declared.
    """
    model = read_model(model_file)
    ids = {piece.text: index for index, piece in enumerate(model.pieces)}
    metaspace = {
        "type": "Metaspace",
        "replacement": SPACE,
        "prepend_scheme": "always",
        "split": True,
    }
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    flags["special"] = True
    segmenter = _unigram(model) if model.algorithm == "unigram" else _bpe(model, ids)
    definition = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **flags} for token in special_tokens],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(model)},
        "pre_tokenizer": metaspace,
        "post_processor": None,
        "decoder": _decoder(model, metaspace),
        "model": segmenter,
    }
    return json.dumps(definition, ensure_ascii=False)


def _normalizers(model: SentencePieceModel) -> list[dict[str, Any]]:
    """Return the normalization steps that are equal to SentencePiece's, see the module."""
    steps: list[dict[str, Any]] = []
    if model.character_map:
        # Steps: NFKC; add a break before marks, format characters and modifiers; apply the map;
        # remove the breaks.
        encoded = base64.b64encode(model.character_map).decode()
        steps += [
            {"type": "NFKC"},
            {
                "type": "Replace",
                "pattern": {"Regex": r"(?=[\p{M}\p{Cf}\p{Sk}])"},
                "content": GRAPHEME_BREAK,
            },
            {"type": "Precompiled", "precompiled_charsmap": encoded},
            {"type": "Replace", "pattern": {"String": GRAPHEME_BREAK}, "content": ""},
        ]
    # Strip only spaces: SentencePiece keeps other white space that no rule has mapped.
    steps += [{"type": "Replace", "pattern": {"Regex": r"\A +| +\z"}, "content": ""}]
    return [*steps, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]


def _unigram(model: SentencePieceModel) -> dict[str, Any]:
    kinds = [piece.type for piece in model.pieces]
    pieces: list[list[Any]] = []
    for piece in model.pieces:
        score = piece.score
        if piece.type is not PieceType.NORMAL:
            score = CONTROL_SCORE
        pieces.append([piece.text, score])
    return {
        "type": "Unigram",
        "unk_id": kinds.index(PieceType.UNKNOWN),
        "vocab": pieces,
        "byte_fallback": PieceType.BYTE in kinds,
    }


def _bpe(model: SentencePieceModel, ids: dict[str, int]) -> dict[str, Any]:
    """Convert SentencePiece's BPE to a list of merges, which ``tokenizers`` needs.

    SentencePiece merges any two neighbors that together spell a piece, the best-scored piece first.
    So each split of a piece into two others is a merge here.
    """
    normal = {
        piece.text: index
        for index, piece in enumerate(model.pieces)
        if piece.type is PieceType.NORMAL
    }
    merges = []
    for text, index in normal.items():
        splits = [(text[:cut], text[cut:]) for cut in range(1, len(text))]
        known = [(left, right) for left, right in splits if left in normal and right in normal]
        known.sort(key=lambda split: (normal[split[0]], normal[split[1]]))
        score = model.pieces[index].score
        merges += [(-score, index, rank, split) for rank, split in enumerate(known)]
    # The order of the merges is their priority: first by the best score of the piece, then by its
    # lower id, then by the lower ids of the parts.
    merges.sort(key=lambda merge: merge[:3])
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": next(piece.text for piece in model.pieces if piece.type is PieceType.UNKNOWN),
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": any(piece.type is PieceType.BYTE for piece in model.pieces),
        "ignore_merges": False,
        "vocab": ids,
        "merges": [list(merge[3]) for merge in merges],
    }


def _decoder(model: SentencePieceModel, metaspace: dict[str, Any]) -> dict[str, Any]:
    if all(piece.type is not PieceType.BYTE for piece in model.pieces):
        return metaspace
    return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, metaspace]}


def _piece_type(processor: Any, index: int) -> PieceType:
    tests = {
        PieceType.UNKNOWN: processor.is_unknown,
        PieceType.CONTROL: processor.is_control,
        PieceType.BYTE: processor.is_byte,
        PieceType.UNUSED: processor.is_unused,
    }
    return next((kind for kind, is_kind in tests.items() if is_kind(index)), PieceType.NORMAL)


def _message(message: bytes, number: int) -> bytes:
    """Return the last value of a length-delimited protobuf field; empty if it is absent."""
    return next((value for key, value in reversed(list(_fields(message))) if key == number), b"")


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the (field number, value) pairs of a message in the Protobuf wire format."""
    at = 0
    while at < len(message):
        # A key holds the field number and, in its lowest three bits, the type of the value. Type 0
        # is a varint, type 1 is eight bytes, and type 5 is four bytes. Type 2 is a varint with a
        # number of bytes, and then these bytes.
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}[kind]
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Read a number in groups of 7 bits, the lowest first; return it and the next position."""
    value = shift = 0
    # The highest bit says that another group follows.
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        at = at + 1
        shift = shift + 7
    return value | message[at] << shift, at + 1
