"""The vocabulary: one ``tokenizers.Tokenizer`` and the names of its special tokens.

It comes from SentencePiece (``sentencepiece_training.py``) or from a Hugging Face model
(``huggingface_tokenizer.py``); from here on there is no difference. Texts go to the tokenizer in
chunks, and it tokenizes each chunk on all cores. If tokens are limited, only the start of a
long text is tokenized: otherwise a whole book would be tokenized and all but a few hundred tokens
dropped.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from interlingua.config.languages import resolve_language
from interlingua.corpus.forms.text_forms import TEXT_FORMS, normalizers_of, undo_forms
from interlingua.corpus.segments.segmentation import PreTokenizer, segment_words
from interlingua.errors import ConfigError, DataError
from interlingua.storage.files import PathLike, atomic_write
from interlingua.storage.formats import VOCABULARY as VOCABULARY_FORMAT
from interlingua.storage.json_text import parse_json, read_json_text, refuse_surrogates
from interlingua.storage.locate import best_of_run, installed_model
from interlingua.storage.record import fault_of, write_record
from interlingua.vocabulary.model_files import VocabularyFile, read_file
from interlingua.vocabulary.tokenizer_checks import check_definition

if TYPE_CHECKING:
    from interlingua.vocabulary.sentencepiece_tokenizer import SentencePieceTokenizer

log = logging.getLogger("interlingua")
CHUNK_TEXTS = 4096
"""Number of texts passed to the tokenizer at once: enough for all its threads, few enough to need
little memory."""
_CHARACTERS_PER_TOKEN = 16
"""If tokens are limited, only the start of a text is tokenized at first; it has this number of
characters for each allowed token. If the start gives too few tokens, the whole text is
tokenized."""
SHORT_TEXT = 4000
"""Maximum number of characters of a single text that the calling thread tokenizes itself. The
thread holds Python's lock, so a server can't answer other requests meanwhile."""
CHECKED_TEXTS = 128
"""Interval of checks: of the texts that SentencePiece tokenizes, every 128th is also tokenized by
``tokenizers``."""
BETWEEN_WORDS = re.compile(r"(?<=\w) (?=\w)")
WORD_SPLITTERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit", "Metaspace", "ByteLevel"}


class Vocabulary:
    """Converter of texts to token ids and back.

    Args:
        tokenizer_json: content of a ``tokenizer.json``.
        special_tokens: ``{"pad_token": "<pad>", ...}``, Hugging Face's names for the roles.
        language_tags: the tag of each language, e.g. ``{"deu_Latn": "<2de>"}``; each a single
            token.
        pre_tokenizer: word segmentation that comes first, see ``corpus.segments.segmentation``.
        sentencepiece: the SentencePiece model from which the tokenizer was converted; both are kept
            together.
        text_forms: forms that are undone in a text before all other steps, see
            ``corpus.forms.text_forms``.

    Raises:
        DataError: the JSON is not a tokenizer, or a named token is not in it.
    """

    def __init__(
        self,
        tokenizer_json: str,
        *,
        special_tokens: Mapping[str, str],
        language_tags: Mapping[str, str] | None = None,
        pre_tokenizer: PreTokenizer = "none",
        sentencepiece: bytes | None = None,
        text_forms: Collection[str] = (),
    ) -> None:
        from tokenizers import Tokenizer

        # Parse the definition once: for a large vocabulary this takes longer than encoding a text.
        definition = _checked(tokenizer_json)
        # tokenizers raises plain Exception, and panics of Rust, which do not inherit from it.
        try:
            self.tokenizer = Tokenizer.from_str(tokenizer_json)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise DataError(f"not a tokenizer.json ({error}); download it again") from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._splits_words = _splits_words(definition)
        self._largest_piece = _largest_piece(definition)
        # SentencePiece does not recognize special tokens in text, so models that are trained here
        # do not either; other models recognize them as in transformers.
        self.tokenizer.encode_special_tokens = bool(language_tags) or sentencepiece is not None
        self.special_tokens = dict(special_tokens)
        self.pre_tokenizer = pre_tokenizer
        # Put the forms into their fixed order, because the order affects the digest.
        self.text_forms = tuple(form for form in TEXT_FORMS if form in text_forms)
        self._json = tokenizer_json
        self._tags = dict(language_tags or {})
        self._sentencepiece = sentencepiece
        for token in (*self.special_tokens.values(), *self._tags.values()):
            if self.tokenizer.token_to_id(token) is None:
                raise DataError(
                    f"the tokenizer has no token {token!r}, which its configuration requires;"
                    " download the model again"
                )

    @classmethod
    def load(cls, folder: PathLike) -> Vocabulary:
        """Read the files that ``save`` wrote.

        Raises:
            DataError: a file is missing or damaged.
        """
        path = Path(folder) / "vocabulary.json"
        settings = _read_json(path)
        # Check the format first: a file of another format may lack the expected keys.
        if wrong := fault_of(settings, VOCABULARY_FORMAT):
            raise DataError(f"{wrong}; {VOCABULARY_FORMAT.remedy}", path=path)
        remedy = "save the vocabulary again"
        read_file(VocabularyFile, settings, path, error=DataError, remedy=remedy)
        model = Path(folder) / "sentencepiece.model"
        sentencepiece: bytes | None = None
        if model.is_file():
            sentencepiece = model.read_bytes()
        vocabulary = cls(
            _read_text(Path(folder) / "tokenizer.json"),
            special_tokens=settings["special_tokens"],
            language_tags=settings["language_tags"],
            pre_tokenizer=settings["pre_tokenizer"],
            sentencepiece=sentencepiece,
            text_forms=settings.get("text_forms") or (),
        )
        # If the folder has files of two vocabularies, a model would get wrong ids.
        if vocabulary.digest() != settings["digest"]:
            raise DataError(
                "tokenizer.json does not belong to this file; save the vocabulary again",
                path=path,
            )
        return vocabulary

    @classmethod
    def of_model(cls, path_or_id: PathLike) -> Vocabulary:
        """Read the vocabulary of a model: a directory, an installed model, or one of the hub.

        Raises:
            DataError: the model has no tokenizer.
        """
        model = best_of_run(path_or_id)
        if not Path(model).expanduser().exists():
            model = installed_model(os.fspath(model)) or model
        folder = Path(model).expanduser()
        if (folder / "vocabulary.json").is_file():
            return cls.load(folder)
        return cls.from_huggingface(model)

    @classmethod
    def from_huggingface(cls, path_or_id: PathLike) -> Vocabulary:
        """Take the tokenizer of a Hugging Face model with its special tokens and post-processor.

        Args:
            path_or_id: a model directory, a ``tokenizer.json``, or ``hf:owner/name``.

        Raises:
            DataError: there is no tokenizer there.
        """
        from interlingua.vocabulary.huggingface_tokenizer import read_tokenizer

        definition, special_tokens = read_tokenizer(path_or_id)
        return cls(definition, special_tokens=special_tokens)

    def save(self, folder: PathLike) -> None:
        """Write ``tokenizer.json``, ``vocabulary.json`` and ``sentencepiece.model`` if any."""
        folder = Path(folder)
        settings: dict[str, Any] = {
            "special_tokens": self.special_tokens,
            "language_tags": self._tags,
            "pre_tokenizer": self.pre_tokenizer,
        }
        if self.text_forms:
            settings["text_forms"] = self.text_forms
        settings["digest"] = self.digest()
        with atomic_write(folder / "tokenizer.json") as file:
            file.write(self._json)
        if self._sentencepiece is not None:
            with atomic_write(folder / "sentencepiece.model", "wb") as file:
                file.write(self._sentencepiece)
        write_record(folder / "vocabulary.json", VOCABULARY_FORMAT, settings)

    @property
    def size(self) -> int:
        """Number of ids: rows the embedding matrix needs."""
        return max(self.tokenizer.get_vocab_size(with_added_tokens=True), self._largest_id + 1)

    @functools.cached_property
    def _largest_id(self) -> int:
        # A post-processor stores its own ids of the tokens that it puts around a text.
        around = self.tokenizer.encode("a").ids
        added = self.tokenizer.get_added_tokens_decoder()
        pieces = [self._largest_piece]
        if self._largest_piece < 0:
            # The library can read this definition, but its form is unknown to this code.
            pieces = list(self.tokenizer.get_vocab(with_added_tokens=True).values())
        return max([*pieces, *added, *around], default=-1)

    @property
    def pad_id(self) -> int:
        """Id of the padding token."""
        return self._special_id("pad_token")

    @property
    def unk_id(self) -> int:
        """Id of text that the vocabulary can't spell."""
        return self._special_id("unk_token")

    @property
    def mask_id(self) -> int:
        """Id of the mask token."""
        return self._special_id("mask_token")

    @functools.cached_property
    def language_tags(self) -> dict[str, int]:
        """Id of each language's tag, by its code (``deu_Latn``).

        It is empty for a tokenizer that was not trained by this library.
        """
        return {code: self._id(tag) for code, tag in self._tags.items()}

    @functools.cached_property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that represent no text, sorted.

        They are padding, unknown, mask, start and end, and language tags.
        """
        declared = [
            index
            for index, token in self.tokenizer.get_added_tokens_decoder().items()
            if token.special
        ]
        named = [self._id(token) for token in (*self.special_tokens.values(), *self._tags.values())]
        return tuple(sorted({*declared, *named}))

    @functools.cached_property
    def closing_tokens(self) -> int:
        """Special tokens that end every sequence (1 for ``</s>`` or ``[SEP]``).

        They are kept when a sequence is cut.
        """
        return self._special_until_text(reversed(self.tokenizer.encode("a").special_tokens_mask))

    @functools.cached_property
    def opening_tokens(self) -> int:
        """Special tokens at the start of every sequence (1 for ``<s>`` or ``[CLS]``)."""
        return self._special_until_text(self.tokenizer.encode("a").special_tokens_mask)

    def encode(
        self,
        texts: Iterable[str],
        *,
        language: str | None = None,
        max_tokens: int | None = None,
        sentencepiece_threads: int = 0,
    ) -> list[list[int]]:
        """Return the token ids of texts, with the special tokens of the post-processor.

        A text without tokens (an empty one, if no special tokens are added) becomes one unknown
        token, so that no sequence is empty.

        Args:
            texts: any number.
            language: their code; needed if the vocabulary pre-tokenizes by language.
            max_tokens: longer sequences are cut to this many, closing special tokens kept.
            sentencepiece_threads: threads of SentencePiece's own C++, which tokenizes millions of
                texts several times as fast. It is used only if its ids are known to be equal, see
                ``sentencepiece_tokenizer.py``. 0 = only the tokenizers library.

        Raises:
            ConfigError: the vocabulary pre-tokenizes by language and ``language`` is None.
        """
        texts = list(texts)
        encoded: list[list[int]] = []
        for start in range(0, len(texts), CHUNK_TEXTS):
            chunk = texts[start : start + CHUNK_TEXTS]
            encoded += self._ids(chunk, language, max_tokens, sentencepiece_threads)
        for index, ids in enumerate(encoded):
            if not ids:
                encoded[index] = [self.unk_id]
            elif max_tokens is not None and len(ids) > max_tokens:
                encoded[index] = truncate(ids, max_tokens, closing_tokens=self.closing_tokens)
        return encoded

    @property
    def spells_special_tokens(self) -> bool:
        """True if a special token's name in a text (``<MASK>``) counts as letters.

        This is the case in all vocabularies that are trained here.
        """
        return bool(self.tokenizer.encode_special_tokens)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of token ids."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def digest(self) -> str:
        """Compute the hexadecimal SHA-256 of everything that determines the ids.

        It is the same before and after ``save`` and ``load``.
        """
        parts: list[Any] = [self._json, self.special_tokens, self._tags, self.pre_tokenizer]
        # Add the forms only if there are any, so that other vocabularies keep their digest.
        if self.text_forms:
            parts.append(self.text_forms)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def definition(self) -> dict[str, Any]:
        """A fresh copy of the content of ``tokenizer.json``."""
        return cast("dict[str, Any]", parse_json(self._json))

    @property
    def model_type(self) -> str:
        """``Unigram``, ``BPE``, ``WordPiece`` or ``WordLevel``."""
        return type(self.tokenizer.model).__name__

    def with_definition(self, definition: dict[str, Any]) -> Vocabulary:
        """Return another tokenizer with the same names of special tokens and tags."""
        return Vocabulary(
            json.dumps(definition, ensure_ascii=False),
            special_tokens=self.special_tokens,
            language_tags=self._tags,
            pre_tokenizer=self.pre_tokenizer,
            text_forms=self.text_forms,
        )

    def with_text_forms(self, text_forms: Collection[str]) -> Vocabulary:
        """Return the same vocabulary with other forms of texts undone.

        Args:
            text_forms: any of ``corpus.forms.text_forms.TEXT_FORMS``; if empty, texts are read
                unchanged.

        Raises:
            ConfigError: there is no such form.
        """
        for form in text_forms:
            if form not in TEXT_FORMS:
                raise ConfigError(
                    f"text_forms: unknown form {form!r}; use one of: {', '.join(TEXT_FORMS)}"
                )
        content = self._json
        steps = normalizers_of(self.text_forms)
        # A file that ``for_other_libraries`` wrote undoes the present forms too. A step of another
        # type, NFC, may be the tokenizer's own.
        if any(step["type"] == "Replace" for step in steps):
            definition = self.definition
            own = _normalizers(definition)
            if own[: len(steps)] == steps:
                _set_normalizers(definition, _without_start(own, steps))
                content = json.dumps(definition, ensure_ascii=False)
        return Vocabulary(
            content,
            special_tokens=self.special_tokens,
            language_tags=self._tags,
            pre_tokenizer=self.pre_tokenizer,
            sentencepiece=self._sentencepiece,
            text_forms=text_forms,
        )

    def for_other_libraries(self) -> Vocabulary:
        """Return the vocabulary with its forms of texts undone in ``tokenizer.json`` too.

        This is done as far as such a file allows: only this library can undo presentation forms and
        capitals. The ids do not change. A vocabulary whose file already undoes them is returned
        unchanged.
        """
        steps = normalizers_of(self.text_forms)
        if not steps:
            return self
        definition = self.definition
        own = _normalizers(definition)
        if own == steps + _without_start(own, steps):
            return self
        _set_normalizers(definition, steps + _without_start(own, steps))
        return self.with_definition(definition)

    def as_read(self, text: str, *, language: str | None = None) -> str:
        """Return the text that the tokenizer reads: forms undone, words segmented.

        Offsets of tokens are positions in this text.

        Args:
            text: as it is written.
            language: its code; needed if the vocabulary pre-tokenizes by language.
        """
        (read,) = self._segmented(undo_forms([text], self.text_forms), language)
        return read

    def _ids(
        self, texts: list[str], language: str | None, max_tokens: int | None, threads: int
    ) -> list[list[int]]:
        """Return the token ids of texts; for a long text, at least its first ``max_tokens`` ids.

        Words are tokenized independently, so the rest of a text does not change the tokens of its
        start.
        """
        try:
            texts = undo_forms(texts, self.text_forms)
        except (AttributeError, TypeError):
            _refuse_broken(texts)
            raise
        texts = self._segmented(texts, language)
        beginnings = texts
        if max_tokens is not None and self._splits_words:
            beginnings = [_beginning(text, _CHARACTERS_PER_TOKEN * max_tokens) for text in texts]
        # tokenizers may raise any exception, for example if its unknown token is not in the
        # vocabulary.
        try:
            if len(beginnings) == 1 and len(beginnings[0]) <= SHORT_TEXT:
                # Use this thread: other threads would occupy a core that encoding needs.
                ids = [self.tokenizer.encode(beginnings[0]).ids]
            else:
                ids = self._batch_ids(beginnings, threads)
        except (TypeError, UnicodeEncodeError):
            _refuse_broken(beginnings)
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise DataError(
                f"the tokenizer cannot tokenize a text ({error}); download or train the model again"
            ) from error
        # If a start gave fewer tokens than the limit, it was too short: tokenize the whole text.
        for index, (beginning, text) in enumerate(zip(beginnings, texts, strict=True)):
            if len(beginning) < len(text) and len(ids[index]) < (max_tokens or 0):
                (ids[index],) = [one.ids for one in self.tokenizer.encode_batch_fast([text])]
        return ids

    def _batch_ids(self, texts: list[str], threads: int) -> list[list[int]]:
        """Return the token ids of many texts, by SentencePiece's C++ if its ids are equal."""
        fast = self._sentencepiece_tokenizer if threads else None
        if fast is not None and fast.covers(texts):
            ids = fast.encode(texts, threads=threads)
            checked = self.tokenizer.encode_batch_fast(texts[::CHECKED_TEXTS])
            if ids[::CHECKED_TEXTS] == [encoding.ids for encoding in checked]:
                return ids
            log.warning(
                "vocabulary: SentencePiece and its conversion give different ids; the conversion"
                " is used"
            )
            self._sentencepiece_tokenizer = None
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)]

    @functools.cached_property
    def _sentencepiece_tokenizer(self) -> SentencePieceTokenizer | None:
        from interlingua.vocabulary.sentencepiece_tokenizer import (
            SentencePieceTokenizer,
            can_replace,
        )

        model = self._sentencepiece
        names = list(self.special_tokens.values())
        if model is None or not can_replace(model, self._json, names):
            return None
        return SentencePieceTokenizer(model)

    @staticmethod
    def _special_until_text(special_tokens_mask: Iterable[int]) -> int:
        return next((count for count, special in enumerate(special_tokens_mask) if not special), 0)

    def _segmented(self, texts: list[str], language: str | None) -> list[str]:
        if self.pre_tokenizer == "none":
            return texts
        if language is None:
            raise ConfigError(
                f"the vocabulary segments words by language ({self.pre_tokenizer!r}), but no"
                " language is set; pass language='deu_Latn' (command line: --language deu_Latn)"
            )
        return segment_words(texts, language=language, pre_tokenizer=self.pre_tokenizer)

    def _special_id(self, role: str) -> int:
        if role not in self.special_tokens:
            there = ", ".join(self.special_tokens) or "no special tokens"
            raise ConfigError(
                f"the vocabulary has no {role}, only {there}; use a vocabulary with this token"
            )
        return self._id(self.special_tokens[role])

    def _id(self, token: str) -> int:
        return cast(int, self.tokenizer.token_to_id(token))


def _checked(tokenizer_json: str) -> dict[str, Any]:
    """Return the definition after checks against content that would harm the library.

    The result is empty if the definition is malformed; the library reports this better.
    """
    try:
        definition = parse_json(tokenizer_json)
        check_definition(definition)
    except DataError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return cast("dict[str, Any]", definition)


def _splits_words(definition: dict[str, Any]) -> bool:
    """Return whether no token crosses a space between two letters."""
    first = definition.get("pre_tokenizer") or {}
    steps = [first, *first.get("pretokenizers", ())]
    # Metaspace has the option "split", and ByteLevel has "use_regex"; if it is off, they split
    # nothing.
    splits = any(
        step.get("type") in WORD_SPLITTERS and step.get("split", step.get("use_regex", True))
        for step in steps
    )
    # An added token with a space in it may extend over the border.
    added = definition.get("added_tokens") or ()
    return splits and all(" " not in token["content"] for token in added)


def _largest_piece(definition: dict[str, Any]) -> int:
    """Return the largest id of the model's pieces; -1 if there are none, or none were found.

    The library's own function is not used here, because it would copy the whole vocabulary.
    """
    pieces = definition.get("model", {}).get("vocab", ())
    # Unigram has a list of pieces, in which the position is the id.
    if isinstance(pieces, dict):
        return cast(int, max(pieces.values(), default=-1))
    return len(pieces) - 1


def _beginning(text: str, characters: int) -> str:
    """Return the text up to the first end of a word after ``characters`` characters.

    The whole text is returned if there is none.
    """
    if len(text) <= characters:
        return text
    found = BETWEEN_WORDS.search(text, characters)
    if found is None:
        return text
    return text[: found.start()]


def _refuse_broken(texts: list[str]) -> None:
    """Refuse values that are not texts, and texts that can't be written as UTF-8.

    Raises:
        DataError: there is such a value or text.
    """
    for text in texts:
        if not isinstance(text, str):
            raise DataError(
                f"expected texts to encode, found {type(text).__name__}; pass a list of texts"
            )
        try:
            refuse_surrogates(text)
        except ValueError as error:
            raise DataError(f"{error} (in {text[:60]!a})") from error


def truncate(ids: Sequence[int], max_tokens: int, *, closing_tokens: int) -> list[int]:
    """Cut a longer sequence to ``max_tokens``, and keep its last ``closing_tokens``."""
    if len(ids) <= max_tokens:
        return list(ids)
    closing = min(closing_tokens, max_tokens)
    return [*ids[: max_tokens - closing], *ids[len(ids) - closing :]]


def language_tag_names(languages: Iterable[str]) -> dict[str, str]:
    """Name the tag of each language, as EMS does (Mao et al. 2023).

    The tag is ``<2de>`` from ISO 639-1, else a code from ISO 639-3 (``<2arz>``). Tags of languages
    that differ only by script contain the script: ``<2zh_Hans>`` and ``<2zh_Hant>``.
    """
    found = {language.code: language for language in map(resolve_language, sorted(set(languages)))}
    short = {code: language.iso1 or language.iso3 for code, language in found.items()}
    names = list(short.values())
    tags = {}
    for code, name in short.items():
        tags[code] = f"<2{name}>"
        if names.count(name) > 1:
            tags[code] = f"<2{name}_{found[code].script}>"
    return tags


def _read_text(path: Path) -> str:
    try:
        return read_json_text(path)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(
            f"cannot be read ({reason}); save the vocabulary again", path=path
        ) from error
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8; copy the original file again", path=path) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(_read_text(path))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not JSON ({error}); copy the original file again", path=path) from error
    if not isinstance(content, dict):
        raise DataError("expected a JSON object; copy the original file again", path=path)
    return content


def _normalizers(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a tokenizer's normalizer, in their order."""
    own = definition.get("normalizer")
    if own is None:
        return []
    return list(own["normalizers"]) if own["type"] == "Sequence" else [own]


def _set_normalizers(definition: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    """Replace the steps of a tokenizer's normalizer."""
    if len(steps) > 1:
        definition["normalizer"] = {"type": "Sequence", "normalizers": steps}
    else:
        definition["normalizer"] = steps[0] if steps else None


def _without_start(own: list[dict[str, Any]], steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ``own`` without leading repetitions of ``steps``."""
    while steps and own[: len(steps)] == steps:
        own = own[len(steps) :]
    return own
