"""Training a SentencePiece vocabulary on a language-balanced sample."""

from __future__ import annotations

import io
import logging
import os
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from interlingua.corpus.samples.sampling import quotas
from interlingua.corpus.segments.segmentation import PreTokenizer, segment_words
from interlingua.errors import DataError
from interlingua.runtime.progress import Progress, progress_of
from interlingua.runtime.seeds import seed_for
from interlingua.vocabulary.sentencepiece_conversion import tokenizer_json
from interlingua.vocabulary.vocabulary import Vocabulary, language_tag_names

log = logging.getLogger("interlingua")
_MAX_CHARACTERS = 4000
"""Longer texts are cut to this many characters before they are counted."""
SPECIAL_TOKENS = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<MASK>"}


def train_vocabulary(
    sample: Iterable[tuple[str, str]],
    *,
    size: int,
    languages: Sequence[str],
    model_type: Literal["bpe", "unigram"] = "bpe",
    lowercase: bool = True,
    byte_fallback: bool = False,
    character_coverage: float = 0.9995,
    temperature: float = 5.0,
    sample_sentences: int = 1_000_000,
    pre_tokenizer: PreTokenizer = "none",
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> Vocabulary:
    """Train SentencePiece as EMS (Mao et al. 2023) does, and convert it.

    The result is an equal ``tokenizers.Tokenizer``. Ids: ``<pad>`` 0, ``<unk>`` 1, ``<MASK>`` 2,
    one tag a language (``<2de>``), then pieces; no start and end tokens.

    Args:
        sample: (language code, text) in any order and of any length; streamed once.
        size: total number of ids; there are fewer, with a note, if the text is not enough.
        languages: codes of the languages to make a tag for.
        model_type: of SentencePiece.
        lowercase: NFKC with case folding (``nmt_nfkc_cf``); else only NFKC (``nmt_nfkc``).
        byte_fallback: spell unknown characters as bytes instead of ``<unk>``.
        character_coverage: share of all characters that get a piece of their own, in (0, 1].
        temperature: languages are sampled with weight n^(1/temperature); 1 is proportional.
        sample_sentences: maximum number of texts to train on; from more texts a sample is drawn.
        pre_tokenizer: word segmentation before training and, from then on, before encoding.
        seed: of the sample.
        threads: default: all cores.
        progress: True shows it on standard error.

    Raises:
        DataError: there is no text, or more characters than ``size`` has room for.
    """
    tags = language_tag_names(languages)
    with progress_of(progress) as shown:
        shown.start(None, "texts", "vocabulary")
        shown.note("sampling text for the vocabulary")
        texts = balanced_sample(
            sample, sentences=sample_sentences, temperature=temperature, seed=seed
        )
        shown.note(
            f"training {size:,} {model_type} pieces on {sum(map(len, texts.values())):,} texts"
        )
        rule = "nmt_nfkc_cf" if lowercase else "nmt_nfkc"
        # The last name contains all hexadecimal digits, of which the names of bytes consist.
        spelled = [*tags.values(), *SPECIAL_TOKENS.values(), "<0x123456789>"]
        model = _train_sentencepiece(
            _shuffled(texts, pre_tokenizer, seed),
            vocab_size=size,
            model_type=model_type,
            control_symbols=[SPECIAL_TOKENS["mask_token"], *tags.values()],
            required_chars=_spelling(spelled, lowercase=lowercase),
            normalization_rule_name=rule,
            byte_fallback=byte_fallback,
            character_coverage=character_coverage,
            num_threads=threads or os.cpu_count() or 1,
        )
    vocabulary = Vocabulary(
        tokenizer_json(model, special_tokens=list(SPECIAL_TOKENS.values())),
        special_tokens=SPECIAL_TOKENS,
        language_tags=tags,
        pre_tokenizer=pre_tokenizer,
        sentencepiece=model,
    )
    if vocabulary.size < size:
        log.warning(
            "vocabulary: %s pieces were requested, but the text yields only %s",
            f"{size:,}",
            f"{vocabulary.size:,}",
        )
    return vocabulary


def balanced_sample(
    sample: Iterable[tuple[str, str]], *, sentences: int, temperature: float, seed: int
) -> dict[str, list[str]]:
    """Draw texts by language with weight n^(1/temperature), in one pass.

    Memory holds about 2 * ``sentences`` texts. If this limit requires it, a language is limited to
    twice an equal share. If a language has too few texts, the other languages fill its share.

    Returns:
        texts by language; all texts if there are at most ``sentences``.

    Raises:
        DataError: there is no text.
    """
    counts: dict[str, int] = {}
    reservoirs: dict[str, list[str]] = {}
    draw = random.Random(seed_for(seed, "vocabulary sample"))
    # Hold at most `most_held` texts of all languages together and `capacity` texts of each
    # language; `capacity` decreases as more languages occur.
    most_held = 2 * sentences
    capacity = most_held
    held = 0
    for language, text in sample:
        if not text or text.isspace():
            continue
        reservoir = reservoirs.setdefault(language, [])
        seen = counts[language] = counts.get(language, 0) + 1
        # Algorithm R: each of a language's texts so far is held with the same probability.
        if seen <= capacity:
            reservoir.append(text[:_MAX_CHARACTERS])
            held += 1
        elif (place := draw.randrange(seen)) < capacity:
            reservoir[place] = text[:_MAX_CHARACTERS]
        # If too many texts are held, cut each language to an equal share. Shuffle first, because
        # the dropped part of a reservoir must be random.
        if held > most_held:
            capacity = max(1, most_held // len(reservoirs))
            for kept in reservoirs.values():
                draw.shuffle(kept)
                del kept[capacity:]
            held = sum(map(len, reservoirs.values()))
    if not counts:
        raise DataError("no text to train a vocabulary on; check the input files")
    if sum(counts.values()) <= sentences:
        return reservoirs
    held_by_language = {language: len(texts) for language, texts in reservoirs.items()}
    sizes = quotas(counts, sentences, temperature, held=held_by_language)
    return {language: draw.sample(texts, sizes[language]) for language, texts in reservoirs.items()}


def _shuffled(texts: dict[str, list[str]], pre_tokenizer: PreTokenizer, seed: int) -> Iterator[str]:
    """Yield the texts of all languages in random order.

    The order affects SentencePiece's suffix array and pruning.
    """
    everything: list[str] = []
    for language in sorted(texts):
        everything += segment_words(
            texts.pop(language), language=language, pre_tokenizer=pre_tokenizer
        )
    random.Random(seed_for(seed, "vocabulary order")).shuffle(everything)
    while everything:
        # Remove each text here, because SentencePiece keeps a copy: two copies of a million texts
        # would need too much memory.
        yield everything.pop()


def _spelling(names: Iterable[str], *, lowercase: bool) -> str:
    """Return the characters of these pieces' names.

    If the vocabulary knows all of them, a text with such a name is never segmented as that piece.
    """
    letters = "".join(names)
    if lowercase:
        letters = letters.lower()
    return "".join(sorted(set(letters)))


def _train_sentencepiece(texts: Iterator[str], **options: Any) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=texts,
            model_writer=model,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            hard_vocab_limit=False,
            max_sentence_length=4 * _MAX_CHARACTERS,
            minloglevel=3,
            **options,
        )
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        if needed:
            raise DataError(
                f"vocabulary: size {options['vocab_size']} is too small for the characters and"
                f" special tokens, {needed[1]} in total; raise size, or lower"
                " character_coverage"
            ) from error
        raise DataError(
            f"SentencePiece cannot train on this text ({str(error).splitlines()[0]}); add text,"
            " or change the vocabulary options"
        ) from error
    return model.getvalue()
