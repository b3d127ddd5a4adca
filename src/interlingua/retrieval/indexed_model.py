"""The encoder of an index: prompts for passages and questions, and a language map."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import resolve_language
from interlingua.config.registry import check_choice
from interlingua.encoder.encode import COMPUTE_DTYPES, Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.affine_maps import LanguageMap
from interlingua.encoder.query_and_passage import Role, role_prompt
from interlingua.encoder.texts import is_blank
from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.chunks import DEFAULT_CHUNKS, ChunkSettings, check_chunks, chunked
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings


class IndexedModel:
    """Model that embeds passages and questions to comparable vectors.

    Args:
        encoder: the model.
        path: where it was read from, for the index's record.
        prompt: for passages, a prompt's name or a text; None = the model's own for passages, if it
            has one.
        question_prompt: for questions, a name or a text in the same way.
        language_map: applied to all vectors; None = none.
        chunks: sizes of the chunks into which long passages are cut.
        dtype: to compute in.

    Raises:
        ConfigError: a size of chunks is out of range, the model has no such prompt, the dtype is
            unknown, or the map is of another width.
    """

    def __init__(
        self,
        encoder: Encoder,
        path: str,
        *,
        prompt: str | None = None,
        question_prompt: str | None = None,
        language_map: LanguageMap | None = None,
        chunks: ChunkSettings = DEFAULT_CHUNKS,
        dtype: Dtype = "float32",
    ) -> None:
        check_chunks(chunks)
        check_choice("dtype", dtype, COMPUTE_DTYPES)
        if language_map is not None and len(language_map.bias) != encoder.dim:
            raise ConfigError(
                f"the language map: expected vectors of {len(language_map.bias)} dimensions, found"
                f" a model of {encoder.dim}; use the map of this model"
            )
        self.encoder = encoder
        self.path = path
        self.language_map = language_map
        self.chunks = chunks
        self.dtype: Dtype = dtype
        self.passage_prompt = self._prompt_text(prompt, "passage")
        self.question_prompt = self._prompt_text(question_prompt, "query")

    @property
    def settings(self) -> IndexSettings:
        """Settings that an index of this model records."""
        digest_of_map = ""
        if self.language_map is not None:
            digest_of_map = map_digest(self.language_map)
        return IndexSettings(
            model=self.path,
            digest=self.encoder.digest(),
            dim=self.encoder.dim,
            passage_prompt=self.passage_prompt,
            question_prompt=self.question_prompt,
            map_digest=digest_of_map,
            chunk_tokens=self.chunks.tokens,
            chunk_overlap=self.chunks.overlap,
        )

    def chunked(self, passages: Iterable[Passage]) -> Iterator[Passage]:
        """Yield passages, and cut long ones into chunks; see ``retrieval.chunks``."""
        vocabulary = self.encoder.vocabulary
        special = vocabulary.opening_tokens + vocabulary.closing_tokens
        [prompt] = self._count_tokens([self.passage_prompt], "")
        most = self.encoder.max_tokens - special - prompt
        return chunked(passages, self.chunks, self._count_tokens, most)

    def _count_tokens(self, texts: Sequence[str], language: str) -> list[int]:
        vocabulary = self.encoder.vocabulary
        special = vocabulary.opening_tokens + vocabulary.closing_tokens
        return [
            max(0, len(ids) - special)
            for ids in vocabulary.encode(texts, language=language or None)
        ]

    @property
    def needs_language(self) -> bool:
        """True if the vector of a text depends on its language's code."""
        by_shift = self.language_map is not None and self.language_map.shifts is not None
        return (
            by_shift
            or self.encoder.vocabulary.pre_tokenizer != "none"
            or self.encoder.language_shift is not None
        )

    def embed_passages(self, passages: Sequence[Passage]) -> Float32[ndarray, "n d"]:
        """Return one vector of length 1 for each passage.

        Raises:
            DataError: the model needs a language that a passage lacks.
        """
        vectors = np.empty((len(passages), self.encoder.dim), dtype=np.float32)
        for rows, texts, language in self.by_language(passages):
            vectors[rows] = self._embed(texts, self.passage_prompt, language)
        return vectors

    def by_language(
        self, passages: Sequence[Passage]
    ) -> Iterator[tuple[list[int], list[str], str | None]]:
        """Yield rows, texts and language of passages that the encoder takes at once.

        Each item has the passages of one language. If the model needs no language, the only item
        has all passages and None as the language.

        Raises:
            DataError: the model needs a language that a passage lacks.
        """
        if not self.needs_language:
            yield list(range(len(passages))), [one.embedded_text for one in passages], None
            return
        for language in sorted({passage.language for passage in passages}):
            rows = [row for row, passage in enumerate(passages) if passage.language == language]
            if not language:
                raise DataError(
                    f"{passages[rows[0]].id}: the language is missing, which this model requires;"
                    " add --language"
                )
            yield rows, [passages[row].embedded_text for row in rows], language

    def embed_question(self, question: str, language: str | None = None) -> Float32[ndarray, " d"]:
        """Return the vector of a question, of length 1.

        Args:
            question: any text.
            language: its language in any code, if the model needs it.

        Raises:
            ConfigError: the model needs the language.
        """
        if self.needs_language and language is None:
            raise ConfigError("this model requires the language of the question; add --language")
        code = None
        if language is not None:
            code = resolve_language(language).code
        vector: Float32[ndarray, " d"] = self._embed([question], self.question_prompt, code)[0]
        return vector

    def _prompt_text(self, prompt: str | None, role: Role) -> str:
        """Return the text of a prompt, specified by its name or its text; by default the role's."""
        # An index stores the text of a prompt, not its name, so this text is returned unchanged.
        if prompt in self.encoder.settings.prompts.values():
            return cast(str, prompt)
        if prompt is None:
            prompt = role_prompt(self.encoder, role, {}, None)
        return self.encoder.settings.prompt_text(prompt)

    def map_vectors(
        self, vectors: Float32[ndarray, "n d"], language: str | None
    ) -> Float32[ndarray, "n d"]:
        """Apply the language map, if there is one, to the encoder's vectors.

        Args:
            vectors: of length 1.
            language: code of the language of all texts.
        """
        if self.language_map is None:
            return np.asarray(vectors, dtype=np.float32)
        languages = None
        if language is not None:
            languages = [language] * len(vectors)
        return self.language_map.apply(vectors, languages=languages)

    def _embed(
        self, texts: list[str], prompt: str, language: str | None
    ) -> Float32[ndarray, "n d"]:
        """Return the vectors of texts of one language, after the map."""
        # The prompt is added here, because the encoder would look up a text such as "query" as the
        # name of a prompt.
        # A blank text stays blank, and has the zero vector.
        prompted = [text if is_blank(text) else prompt + text for text in texts]
        vectors = self.encoder.encode(prompted, prompt="", language=language, dtype=self.dtype)
        return self.map_vectors(vectors, language)


def map_digest(language_map: LanguageMap) -> str:
    """Compute the hex SHA-256 of a map as its file stores it, in float32."""
    found = hashlib.sha256(f"{language_map.method} {' '.join(language_map.languages)}".encode())
    for part in (language_map.weight, language_map.bias, language_map.shifts):
        if part is not None:
            found.update(np.ascontiguousarray(part, dtype=np.float32).tobytes())
    return found.hexdigest()
