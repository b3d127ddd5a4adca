"""The encoder of a server: texts to token ids, and vectors to the format of the request."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import resolve_language
from interlingua.encoder.encode import Dtype, automatic_dtype_name, encode_tokens
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.texts import check_text, is_blank
from interlingua.encoder.vector_format import VectorFormat
from interlingua.errors import ConfigError, DataError
from interlingua.storage.arrays import normalize_rows
from interlingua.vocabulary.vocabulary import truncate


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """The texts of a request, ready for a batch."""

    sequences: list[list[int]]
    """Ids of each text, special tokens included, within the model's limit."""
    truncated: int
    """Texts that were cut at the limit."""

    @property
    def tokens(self) -> int:
        """Number of tokens of all texts."""
        return sum(map(len, self.sequences))


class ServedModel:
    """An encoder with the name, prompt and dtype that requests get.

    Args:
        encoder: the model.
        name: name of the model in requests.
        prompt: prompt for requests that name none; None = the model's default.
        dtype: data type of the computation; "auto" is replaced by the type that it selects here.
        aliases: other names of the model in requests.

    Raises:
        ConfigError: the model has no such prompt.
    """

    def __init__(
        self,
        encoder: Encoder,
        name: str,
        *,
        prompt: str | None = None,
        dtype: Dtype = "float32",
        aliases: Sequence[str] = (),
    ) -> None:
        self.encoder = encoder
        self.name = name
        self.names = (name, *aliases)
        self.dtype = dtype
        self.close_dtypes: set[str] = {dtype}
        """Data types that give the same vectors, or vectors whose differences "auto" allows."""
        if dtype == "auto":
            self.dtype = automatic_dtype_name(encoder)
            self.close_dtypes = {self.dtype, "auto", "float32"}
        self._prompt = prompt
        # Refuses a prompt that the model does not have, before any request.
        encoder.settings.prompt_text(prompt)
        # The tokens that the tokenizer puts around any text; a model that needs the language of
        # texts takes no token ids.
        self._opening_ids: list[int] = []
        self._closing_ids: list[int] = []
        if self.takes_any_language:
            vocabulary = encoder.vocabulary
            (ids,) = vocabulary.encode(["a"], language=None, max_tokens=encoder.max_tokens)
            self._opening_ids = ids[: vocabulary.opening_tokens]
            self._closing_ids = ids[len(ids) - vocabulary.closing_tokens :]

    @property
    def takes_any_language(self) -> bool:
        """True if texts need no language."""
        return (
            self.encoder.vocabulary.pre_tokenizer == "none" and self.encoder.language_shift is None
        )

    @functools.cached_property
    def digest(self) -> str:
        """Digest of the weights and the vocabulary; reads all weights."""
        return self.encoder.digest()

    def prompt_text(self, prompt: str | None) -> str:
        """Return the text that is put before each text of a request.

        Args:
            prompt: see ``tokenize``.
        """
        return self.encoder.settings.prompt_text(self._prompt if prompt is None else prompt)

    @property
    def dim(self) -> int:
        """Width of the vectors, unless a request wants fewer dimensions."""
        return self.encoder.dim

    def tokenize(
        self,
        texts: Sequence[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        auto_truncate: bool = True,
    ) -> TokenizedTexts:
        """Return the token ids of texts.

        Args:
            texts: of a request.
            prompt: name of one of the model's prompts, or a text to put in front; None = the
                server's.
            language: code of their language, see ``language_code``.
            auto_truncate: cut texts that are too long; otherwise refuse them.

        Raises:
            DataError: a text is not valid Unicode, or too long and not to be cut.
            ConfigError: there is no such prompt, or the model needs a language.
        """
        before = self.prompt_text(prompt)
        prompted = [before + check_text(text, row, "input") for row, text in enumerate(texts)]
        limit = self.encoder.max_tokens
        # One token more than the limit shows that a text was cut.
        ids = self.encoder.vocabulary.encode(prompted, language=language, max_tokens=limit + 1)
        return self._within_limit(ids, auto_truncate=auto_truncate)

    def wrap_tokens(
        self, sequences: Sequence[Sequence[int]], *, auto_truncate: bool = True
    ) -> TokenizedTexts:
        """Add the special tokens around the token ids that a client sent.

        Args:
            sequences: ids of the model's own vocabulary.
            auto_truncate: see ``tokenize``.

        Raises:
            DataError: an id is not in the vocabulary, or a sequence is too long and not to be cut.
            ConfigError: the model needs the language of texts, which ids don't have.
        """
        if not self.takes_any_language:
            raise ConfigError(
                "this model requires texts and their language; send texts instead of token ids"
            )
        # An id outside the table would make the whole batch fail, with the texts of other clients.
        size = self.encoder.vocabulary.size
        for row, ids in enumerate(sequences):
            if ids and not 0 <= min(ids) <= max(ids) < size:
                raise DataError(
                    f"input: row {row}: expected token ids from 0 to {size - 1}, the model's"
                    " vocabulary"
                )
        wrapped = [[*self._opening_ids, *ids, *self._closing_ids] for ids in sequences]
        return self._within_limit(wrapped, auto_truncate=auto_truncate)

    def _within_limit(self, sequences: list[list[int]], *, auto_truncate: bool) -> TokenizedTexts:
        limit = self.encoder.max_tokens
        closing = self.encoder.vocabulary.closing_tokens
        too_long = [row for row, ids in enumerate(sequences) if len(ids) > limit]
        if too_long and not auto_truncate:
            raise DataError(
                f"input: row {too_long[0]}: the text has more than {limit} tokens; shorten it, or"
                " allow truncation"
            )
        # The special tokens at the end stay, and the text before them is cut.
        for row in too_long:
            sequences[row] = truncate(sequences[row], limit, closing_tokens=closing)
        return TokenizedTexts(sequences, len(too_long))

    def embed(self, sequences: list[list[int]], language: str | None) -> Float32[ndarray, "n d"]:
        """Return pooled vectors, before ``shape_vectors``; see ``batching.EmbedTokens``."""
        # The vectors are neither cut nor scaled: a batch has requests with different formats.
        return encode_tokens(
            self.encoder, sequences, normalize=False, dtype=self.dtype, language=language
        )

    def vector_format(self, *, dim: int | None = None, normalize: bool = True) -> VectorFormat:
        """Return how vectors are transformed before they are sent.

        Args:
            dim: dimensions to keep, the first ones.
            normalize: scale the vectors to length 1.

        Raises:
            ConfigError: the vectors have fewer dimensions.
        """
        return VectorFormat.of(
            self.encoder.settings,
            self.encoder.full_dim,
            dim=dim,
            normalize=normalize,
            precision="float32",
        )


def refuse_blank(texts: Sequence[str], what: str = "input") -> None:
    """Refuse a text without a visible character, which no vector can represent.

    Args:
        texts: of a request.
        what: the field that has them.

    Raises:
        DataError: one of the texts is blank; its row is named.
    """
    for row, text in enumerate(texts):
        if isinstance(text, str) and is_blank(text):
            raise DataError(
                f"{what}: row {row}: the text is empty or blank; remove it, or send at least one"
                " visible character"
            )


def shape_vectors(vectors: Float32[ndarray, "n d"], form: VectorFormat) -> Float32[ndarray, "n w"]:
    """Convert vectors of ``ServedModel.embed`` to the format of a request."""
    if not form.normalize or form.cuts:
        return form.cut(vectors)
    # The usual case needs no copies, unlike the general case.
    return normalize_rows(vectors)


def language_code(language: str | None) -> str | None:
    """Return the code of a language named in any way; None stays None.

    Raises:
        ConfigError: it is unknown.
    """
    if language is None:
        return None
    return resolve_language(language).code
