"""A larger vocabulary: new pieces for a language that is split into too many tokens.

Other text is tokenized as before.

New pieces are learned as in byte-pair encoding, on top of the tokens that the old vocabulary gives:
the most frequent pair of neighbors within a word is joined, then the next one. So each new piece
represents a run of old tokens, and its embedding can start as the mean of theirs.

How a piece enters the tokenizer decides what happens to other text:

- Unigram: the score of a new piece is the sum of the scores of its run, plus a tiny amount for each
  token that it saves. The best segmentation of any text therefore stays the old one, with some runs
  of its tokens joined.
- BPE: new merges come after all old ones, which has the same effect.
- WordPiece: the longest match wins, so a new piece can also move the token borders after it.

Tokens of text in other languages change only if they include the run of a new piece. Texts whose
tokens must not change can be passed: pieces that would change any of these texts are left out.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.meta_device import meta_device
from interlingua.encoder.static import make_backbone
from interlingua.errors import ConfigError
from interlingua.vocabulary.pieces import (
    TokenRun,
    encodings,
    learn_merges,
    piece_names,
    unknown_characters,
    with_pieces,
    words_of,
)
from interlingua.vocabulary.vocabulary import Vocabulary

_KINDS = ("Unigram", "WordPiece", "BPE")
LEARNED_PER_PIECE = 3
MORE_MERGES = 100
"""``LEARNED_PER_PIECE`` merges are learned for each requested piece, and ``MORE_MERGES`` on top of
them. More merges are learned than pieces requested, because many merges are only steps towards
longer pieces."""
MOST_ROUNDS = 20
"""Maximum number of rounds in which pieces are left out. One round may not be enough, because the
omission of a piece can make shorter pieces appear."""


class Fragmentation(NamedTuple):
    """The number of characters, words and tokens of a language's text."""

    texts: int
    characters: int
    """Number of characters without white space."""
    words: int
    """Parts between white space."""
    tokens: int
    """Number of tokens without special tokens around a text."""
    unknown: int
    """Number of these tokens that represent text that the vocabulary can't spell."""

    @property
    def characters_per_token(self) -> float:
        """Characters per token; near 1 if text is split into characters."""
        return self.characters / max(1, self.tokens)

    @property
    def tokens_per_word(self) -> float:
        """Tokens per word, also called fertility."""
        return self.tokens / max(1, self.words)

    @property
    def unknown_share(self) -> float:
        """Share of unknown tokens, 0 to 1."""
        return self.unknown / max(1, self.tokens)


class GrownVocabulary(NamedTuple):
    """A vocabulary with new pieces, and the origin of each."""

    vocabulary: Vocabulary
    runs: dict[int, TokenRun]
    """New id -> the old ids that it replaces; an unknown character replaces the unknown token."""
    changed_texts: int
    """Number of kept texts that are nevertheless tokenized differently."""


def measure_fragmentation(
    vocabulary: Vocabulary, texts: Sequence[str], *, language: str | None = None
) -> Fragmentation:
    """Count the characters, words and tokens of texts.

    Args:
        vocabulary: tokenizes them.
        texts: of one language.
        language: their code, if the vocabulary pre-tokenizes by language.
    """
    # Vocabularies that spell with bytes have no unknown token; then the count stays 0, because no
    # id is equal to None.
    unknown_id: int | None = None
    if "unk_token" in vocabulary.special_tokens:
        unknown_id = vocabulary.unk_id
    tokens = 0
    unknown = 0
    for encoding in encodings(vocabulary, texts, language=language):
        tokens += len(encoding.tokens)
        unknown += encoding.ids.count(unknown_id)
    words = [word for text in texts for word in text.split()]
    return Fragmentation(len(texts), sum(map(len, words)), len(words), tokens, unknown)


def grow_vocabulary(
    vocabulary: Vocabulary,
    texts: Sequence[str],
    *,
    pieces: int,
    min_count: int = 20,
    keep: Sequence[str] = (),
    language: str | None = None,
) -> GrownVocabulary:
    """Add pieces for the language of some texts; the ids of old pieces do not change.

    Args:
        vocabulary: Unigram, WordPiece or BPE.
        texts: of the new language.
        pieces: maximum number to add besides unknown characters: the pieces that save most tokens.
        min_count: minimum number of uses of a piece; fewer are not enough to train its embedding.
        keep: texts, of other languages, that have to be tokenized as before.
        language: code of the texts, if the vocabulary pre-tokenizes by language.

    Returns:
        the vocabulary, with fewer new pieces if the texts don't need as many.

    Raises:
        ConfigError: the tokenizer's model is of another kind.
    """
    kind = vocabulary.model_type
    if kind not in _KINDS:
        raise ConfigError(
            f"a {kind} tokenizer cannot be extended; use a model with one of: {', '.join(_KINDS)}"
        )
    # Add the characters first: pieces that contain them can be learned only after the vocabulary
    # can spell them.
    characters = unknown_characters(vocabulary, texts, min_count=min_count, language=language)
    found: dict[str, TokenRun] = dict.fromkeys(characters, (vocabulary.unk_id,))
    spelled = vocabulary
    if found:
        spelled = with_pieces(vocabulary, found)
    words = words_of(spelled, texts, language=language)
    if kind == "BPE":
        # A later merge may need any earlier one, so merges that would change kept text are never
        # learned.
        kept_words = words_of(spelled, keep)
        forbidden = {pair for word in kept_words for pair in itertools.pairwise(word)}
        merges = learn_merges(words, most=pieces, min_count=min_count, forbidden=forbidden)
        found |= piece_names(spelled, (merge.run for merge in merges))
        joined = {name: run for name, run in found.items() if name not in characters}
        grown = with_pieces(spelled, joined, merges)
    else:
        # Learn more pieces than requested. Then remove pieces that occur in kept text, pieces that
        # save fewer tokens than others, and pieces that still change a kept text.
        most = LEARNED_PER_PIECE * pieces + MORE_MERGES
        merges = learn_merges(words, most=most, min_count=min_count)
        found |= piece_names(spelled, (merge.run for merge in merges))
        longest = max((len(run) for run in found.values()), default=0)
        kept_runs = runs_in(words_of(spelled, keep), longest=longest)
        found = {name: run for name, run in found.items() if run not in kept_runs}
        found = _useful(
            spelled, found, texts, pieces=pieces, min_count=min_count, language=language
        )
        found = _harmless(vocabulary, spelled, found, keep)
        grown = _grown(vocabulary, spelled, found)
    # New ids follow the old ones, in the order of the pieces.
    new_ids = enumerate(found.values(), start=vocabulary.size)
    runs = {new_id: _in_old_ids(run, vocabulary) for new_id, run in new_ids}
    changed = _changed(vocabulary, grown, keep)
    return GrownVocabulary(grown, runs, len(changed))


def runs_in(words: Mapping[TokenRun, int], *, longest: int) -> set[TokenRun]:
    """Return all runs of two or more tokens in the words, up to a length."""
    runs: set[TokenRun] = set()
    for word in words:
        for length in range(2, min(longest, len(word)) + 1):
            runs.update(word[start : start + length] for start in range(len(word) - length + 1))
    return runs


def _useful(
    spelled: Vocabulary,
    found: dict[str, TokenRun],
    texts: Sequence[str],
    *,
    pieces: int,
    min_count: int,
    language: str | None,
) -> dict[str, TokenRun]:
    """Return unknown characters, and the pieces that save most tokens.

    The uses of a piece are counted while all pieces compete for the texts.
    """
    longer = {name: run for name, run in found.items() if len(run) > 1}
    grown = with_pieces(spelled, longer)
    uses: Counter[str] = Counter()
    for encoding in encodings(grown, texts, language=language):
        uses.update(encoding.tokens)
    # Each use of a piece replaces all tokens of its run by one token.
    saved = {
        name: uses[name] * (len(run) - 1) for name, run in longer.items() if uses[name] >= min_count
    }
    # Sort equal pieces by name, so that the result does not depend on the order of learning.
    best = sorted(saved, key=lambda name: (-saved[name], name))[:pieces]
    kept = {*best, *(found.keys() - longer.keys())}
    return {name: run for name, run in found.items() if name in kept}


def _harmless(
    vocabulary: Vocabulary, spelled: Vocabulary, found: dict[str, TokenRun], keep: Sequence[str]
) -> dict[str, TokenRun]:
    """Leave out the pieces that change the tokens of a kept text."""
    for _ in range(MOST_ROUNDS):
        grown = _grown(vocabulary, spelled, found)
        changed = _changed(vocabulary, grown, keep)
        if not changed:
            break
        tokens = {token for encoding in encodings(grown, changed) for token in encoding.tokens}
        at_fault = found.keys() & tokens
        if not at_fault:
            # If the text after a new piece has no match, WordPiece makes the whole word unknown,
            # and none of its pieces are visible.
            prefix = vocabulary.definition["model"].get("continuing_subword_prefix") or ""
            text = " ".join(changed)
            at_fault = {name for name in found if name.removeprefix(prefix) in text}
        if not at_fault:
            break
        found = {name: run for name, run in found.items() if name not in at_fault}
    return found


def _grown(
    vocabulary: Vocabulary, spelled: Vocabulary, found: Mapping[str, TokenRun]
) -> Vocabulary:
    """Return the old vocabulary with these pieces.

    The runs of the pieces may contain ids of new characters. Some of these characters may have been
    left out since the runs were learned.
    """
    if spelled.size == vocabulary.size:
        return with_pieces(vocabulary, found)
    in_old_ids = {name: _in_old_ids(run, vocabulary) for name, run in found.items()}
    return with_pieces(vocabulary, in_old_ids)


def _in_old_ids(run: TokenRun, vocabulary: Vocabulary) -> TokenRun:
    """Return a run in old ids; ids of new characters become the id of the unknown token."""
    known = range(vocabulary.size)
    return tuple(token if token in known else vocabulary.unk_id for token in run)


def _changed(before: Vocabulary, after: Vocabulary, texts: Sequence[str]) -> list[str]:
    """Return the texts that two vocabularies tokenize differently."""
    pairs = zip(texts, encodings(before, texts), encodings(after, texts), strict=True)
    return [text for text, old, new in pairs if old.ids != new.ids]


def grow_encoder(encoder: Encoder, grown: GrownVocabulary) -> Encoder:
    """Return the encoder with a row for each new piece, the mean of its old tokens' rows.

    Vectors stay the same for all texts without new pieces.

    Args:
        encoder: the encoder with the vocabulary before its growth; it remains unchanged.
        grown: see ``grow_vocabulary``.
    """
    larger = encoder.clone()
    weights = {name: tensor.detach() for name, tensor in larger.backbone.state_dict().items()}
    table = weights["word_embeddings.weight"]
    # A table may have more rows than its vocabulary has ids; the surplus rows were never used.
    rows = max(len(table), grown.vocabulary.size)
    enlarged = table.new_zeros(rows, table.shape[1])
    enlarged[: len(table)] = table
    for new, old in grown.runs.items():
        enlarged[new] = table[list(old)].mean(dim=0)
    weights["word_embeddings.weight"] = enlarged
    with meta_device():
        backbone = make_backbone(dataclasses.replace(larger.backbone.config, vocab_size=rows))
    backbone.load_state_dict(weights, assign=True)
    larger.backbone = backbone.requires_grad_(True)
    larger.vocabulary = grown.vocabulary
    return larger.train(encoder.training)
