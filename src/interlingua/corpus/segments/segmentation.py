"""Optional splitting of texts into words before the subword tokenizer, by language, as in EMS."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from interlingua.config.languages import resolve_language
from interlingua.errors import ConfigError, MissingExtraError, import_extra

PreTokenizer = Literal["none", "ems"]
CHINESE = ("zho", "cmn", "wuu", "yue")


def segment_words(texts: Sequence[str], *, language: str, pre_tokenizer: PreTokenizer) -> list[str]:
    """Put spaces between the words of texts of one language.

    ``"ems"`` (Mao et al. 2023, section IV-B, and its inference code): strip and lowercase, then
    jieba for Chinese, a morphological analyzer for Japanese, and the Moses tokenizer without XML
    escapes for all others.

    Differs from the paper: SudachiPy's short units replace Juman++, which has no Python package.

    Args:
        texts: raw texts.
        language: their code.
        pre_tokenizer: ``"none"`` returns the texts as they are.

    Raises:
        MissingExtraError: the language's tokenizer is not installed.
        ConfigError: there is no such pre-tokenizer.
    """
    if pre_tokenizer == "none":
        return list(texts)
    if pre_tokenizer != "ems":
        raise ConfigError(
            f"unknown pre_tokenizer {pre_tokenizer!r}; use one of:"
            f" {', '.join(get_args(PreTokenizer))}"
        )
    words = _words(language)
    return [" ".join(words(text.strip().lower())) for text in texts]


@functools.lru_cache(maxsize=512)
def _words(language: str) -> Callable[[str], Sequence[str]]:
    found = resolve_language(language)
    if found.iso3 in CHINESE:
        return _chinese()
    if found.iso3 == "jpn":
        return _japanese()
    return _moses(found.iso1 or found.iso3)


@functools.cache
def _chinese() -> Callable[[str], Sequence[str]]:
    jieba = _imported("jieba")
    jieba.setLogLevel(logging.WARNING)  # it reports on its dictionary at every start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jieba.initialize()
    return lambda text: [word for word in jieba.cut(text) if not word.isspace()]


@functools.cache
def _japanese() -> Callable[[str], Sequence[str]]:
    sudachi = _imported("sudachipy")
    mode = sudachi.SplitMode.A  # the short units
    try:
        dictionary = sudachi.Dictionary()
        # The method is named ``create`` in versions before 0.7.
        make = getattr(dictionary, "tokenizer", None) or dictionary.create
        tokenizer = make()
    except ModuleNotFoundError as error:
        raise MissingExtraError("sudachidict-core", "pretokenizers") from error

    def words(text: str) -> list[str]:
        surfaces = [word.surface() for word in tokenizer.tokenize(text, mode)]
        return [surface for surface in surfaces if not surface.isspace()]

    return words


def _moses(language: str) -> Callable[[str], Sequence[str]]:
    tokenizer = _imported("sacremoses").MosesTokenizer(lang=language)
    return lambda text: tokenizer.tokenize(text, escape=False)


def _imported(module: str) -> Any:
    # jieba's own source raises SyntaxWarning and, through setuptools, DeprecationWarning when
    # first compiled.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_extra(module, extra="pretokenizers")
