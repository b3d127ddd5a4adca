"""New pieces on top of an old vocabulary: the choice of token runs, and the new tokenizer.

Pieces are learned as in byte-pair encoding, from the tokens that the old vocabulary gives. Each
distinct word is processed once, with its number of occurrences. A heap orders the pairs of
neighbors by their counts. The most frequent pair is joined in each word that contains it, which
changes the counts of the adjacent pairs; then this is repeated. Only words that contain the pair
are processed, so the cost depends on the number of changes, not on the size of the text.
"""

from __future__ import annotations

import heapq
import itertools
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.corpus.forms.text_forms import undo_forms
from interlingua.corpus.segments.segmentation import segment_words
from interlingua.vocabulary.vocabulary import Vocabulary

_CHUNK_TEXTS = 4096
SAVED_TOKEN_BONUS = 1e-4
"""Log probability that a new Unigram piece gains for each token that it saves; it only decides
between segmentations that would have equal scores."""
WORD_STARTS = ("▁", "Ġ", " ")
"""Prefixes of the first token of a word; tokens are not joined across the border before it."""
TokenRun = tuple[int, ...]
"""Neighboring token ids within a word."""


class Merge(NamedTuple):
    """Two neighbors that are joined."""

    left: TokenRun
    right: TokenRun

    @property
    def run(self) -> TokenRun:
        """Token run that results from the merge."""
        return self.left + self.right


def words_of(
    vocabulary: Vocabulary, texts: Sequence[str], *, language: str | None = None
) -> Counter[TokenRun]:
    """Count the words of texts, each as a run of tokens.

    Words are split at tokens that do not consist of letters. So no piece joins letters with digits
    or punctuation, as in SentencePiece.

    Args:
        vocabulary: splits the texts into tokens.
        texts: of one language.
        language: their code, if the vocabulary pre-tokenizes by language.
    """
    words: Counter[TokenRun] = Counter()
    prefix = vocabulary.definition["model"].get("continuing_subword_prefix") or ""
    is_word_part: dict[str, bool] = {}
    special = set(vocabulary.special_ids)
    for encoding in encodings(vocabulary, texts, language=language):
        word: list[int] = []
        last_number = None
        numbered = zip(encoding.ids, encoding.tokens, encoding.word_ids, strict=True)
        for token, name, number in numbered:
            if name not in is_word_part:
                has_letters = _is_of_letters(name.removeprefix(prefix))
                is_word_part[name] = token not in special and has_letters
            # A word ends before a token that can't be part of a word, and before a token that the
            # tokenizer assigns to another word. It also ends before a sign for a space, because not
            # every tokenizer starts a new word at this sign.
            is_border = number != last_number or name.startswith(WORD_STARTS)
            if word and (not is_word_part[name] or is_border):
                words[tuple(word)] += 1
                word = []
            last_number = number
            if is_word_part[name]:
                word.append(token)
        if word:
            words[tuple(word)] += 1
    return words


def _is_of_letters(name: str) -> bool:
    """Return whether a piece has only letters and marks written on letters.

    A byte-level piece of several bytes counts too.
    """
    return all(unicodedata.category(character)[0] in "LM" for character in name.lstrip("▁Ġ"))


def encodings(
    vocabulary: Vocabulary, texts: Sequence[str], *, language: str | None = None
) -> Iterator[Any]:
    """Yield the encoding by ``tokenizers`` of each text, without the special tokens around it."""
    texts = undo_forms(texts, vocabulary.text_forms)
    if vocabulary.pre_tokenizer != "none" and language is not None:
        texts = segment_words(texts, language=language, pre_tokenizer=vocabulary.pre_tokenizer)
    for start in range(0, len(texts), _CHUNK_TEXTS):
        chunk = texts[start : start + _CHUNK_TEXTS]
        yield from vocabulary.tokenizer.encode_batch(chunk, add_special_tokens=False)


def learn_merges(
    words: Mapping[TokenRun, int],
    *,
    most: int,
    min_count: int,
    forbidden: Collection[tuple[int, int]] = (),
) -> list[Merge]:
    """Run byte-pair encoding (Sennrich et al. 2016) on tokens instead of characters.

    Args:
        words: tokens of each word -> occurrences.
        most: maximum number of merges.
        min_count: minimum number of occurrences of a pair that is joined.
        forbidden: neighboring tokens that may not be joined.

    Returns:
        the merges in the order in which they were made: the most frequent pair first, and among
        equally frequent pairs the one with the smaller ids.
    """
    # Each word starts as runs of one token; merges make the runs longer.
    spelled: list[list[TokenRun]] = [list(zip(word, strict=True)) for word in words]
    weights = list(words.values())
    counts: Counter[Merge] = Counter()
    places: dict[Merge, set[int]] = {}
    for number, word in enumerate(spelled):
        for left, right in itertools.pairwise(word):
            if (left[0], right[0]) not in forbidden:
                merge = Merge(left, right)
                counts[merge] += weights[number]
                places.setdefault(merge, set()).add(number)
    # Counts in the heap may be out of date. Then they are too high, or the heap also has an entry
    # of the pair with a newer count.
    heap = [(-count, merge) for merge, count in counts.items()]
    heapq.heapify(heap)
    merges: list[Merge] = []
    while heap and len(merges) < most:
        count, merge = heapq.heappop(heap)
        # The count is out of date: push the pair with its current count, unless none is left.
        if -count != counts[merge]:
            if counts[merge]:
                heapq.heappush(heap, (-counts[merge], merge))
            continue
        if -count < min_count:
            break
        merges.append(merge)
        # Pairs that have become more frequent are pushed again; pairs that have become rarer are
        # detected when they are popped.
        touched: set[Merge] = set()
        for number in sorted(places.pop(merge)):
            before = _pairs(spelled[number])
            spelled[number] = _joined(spelled[number], merge)
            changes = _pairs(spelled[number])
            changes.subtract(before)
            for pair, difference in sorted(changes.items()):
                if difference == 0 or (pair.left[-1], pair.right[0]) in forbidden:
                    continue
                counts[pair] += difference * weights[number]
                if difference > 0:
                    places.setdefault(pair, set()).add(number)
                    touched.add(pair)
        counts.pop(merge, None)
        for pair in sorted(touched):
            heapq.heappush(heap, (-counts[pair], pair))
    return merges


def _pairs(word: Sequence[TokenRun]) -> Counter[Merge]:
    return Counter(Merge(left, right) for left, right in itertools.pairwise(word))


def _joined(word: Sequence[TokenRun], merge: Merge) -> list[TokenRun]:
    """Join each occurrence of the pair in a word, from left to right."""
    joined: list[TokenRun] = []
    start = 0
    while start < len(word):
        if start + 1 < len(word) and word[start] == merge.left and word[start + 1] == merge.right:
            joined.append(merge.run)
            start += 2
        else:
            joined.append(word[start])
            start += 1
    return joined


def piece_names(vocabulary: Vocabulary, runs: Iterable[TokenRun]) -> dict[str, TokenRun]:
    """Return the entries for runs of tokens: ``until`` for ``un`` and ``##til``."""
    prefix = vocabulary.definition["model"].get("continuing_subword_prefix") or ""
    found: dict[str, TokenRun] = {}
    for run in runs:
        first, *others = (str(vocabulary.tokenizer.id_to_token(token)) for token in run)
        found[first + "".join(name.removeprefix(prefix) for name in others)] = run
    return found


def unknown_characters(
    vocabulary: Vocabulary, texts: Sequence[str], *, min_count: int, language: str | None = None
) -> list[str]:
    """Return the entries that unknown characters need, in order of the characters.

    Byte-level vocabularies need none.

    WordPiece needs two for each: one at the start of a word and one inside.

    Args:
        vocabulary: the one that lacks the characters.
        texts: texts in which unknown characters are searched.
        min_count: occurrences that a character needs.
        language: code of the texts, if the vocabulary pre-tokenizes by language.
    """
    if "unk_token" not in vocabulary.special_tokens:
        return []
    normalizer = vocabulary.tokenizer.normalizer
    counts: Counter[str] = Counter()
    for text, encoding in zip(texts, encodings(vocabulary, texts, language=language), strict=True):
        if vocabulary.unk_id in encoding.ids:
            if normalizer:
                text = normalizer.normalize_str(text)
            # This counts each character, because a text is a sequence of characters.
            counts.update(text)
    prefix = vocabulary.definition["model"].get("continuing_subword_prefix")
    entries: list[str] = []
    for character in sorted(counts):
        if counts[character] < min_count or character.isspace():
            continue
        names = [character]
        if prefix is not None:
            names.append(prefix + character)
        entries += [name for name in names if vocabulary.tokenizer.token_to_id(name) is None]
    return entries


def with_pieces(
    vocabulary: Vocabulary, pieces: Mapping[str, TokenRun], merges: Iterable[Merge] = ()
) -> Vocabulary:
    """Return the vocabulary with further entries behind its own, in the order of ``pieces``.

    Args:
        vocabulary: Unigram, WordPiece or BPE.
        pieces: name -> the run of old tokens that it replaces.
        merges: the merges from which BPE makes the pieces; Unigram and WordPiece ignore them.
    """
    definition = vocabulary.definition
    model = definition["model"]
    first = vocabulary.size
    if model["type"] == "Unigram":
        _add_to_unigram(vocabulary, model, pieces)
    else:
        model["vocab"] |= {name: new_id for new_id, name in enumerate(pieces, start=first)}
    if model["type"] == "BPE":
        # Older files write a merge as one text, newer ones as two.
        as_text = bool(model["merges"]) and isinstance(model["merges"][0], str)
        new_merges = list(merges)
        entries = piece_names(vocabulary, itertools.chain(*new_merges))
        names = {run: name for name, run in entries.items()}
        # Append the new merges at the end, so that all old merges come before them.
        for merge in new_merges:
            sides = [names[merge.left], names[merge.right]]
            model["merges"].append(" ".join(sides) if as_text else sides)
    return vocabulary.with_definition(definition)


def _add_to_unigram(
    vocabulary: Vocabulary, model: dict[str, Any], pieces: Mapping[str, TokenRun]
) -> None:
    """Append the pieces to the list of entries, with their scores."""
    entries = model["vocab"]
    scores = [score for _, score in entries]
    lowest = min(scores)
    # The ids of added tokens may follow the model's own ids. An id is a place in the list, so the
    # list first gets an entry for each of these tokens.
    for token in range(len(entries), vocabulary.size):
        entries.append([vocabulary.tokenizer.id_to_token(token), lowest])
    for name, run in pieces.items():
        # A character that was unknown gets the lowest score, which also determines the score of the
        # unknown token.
        parts = [lowest if token == vocabulary.unk_id else scores[token] for token in run]
        entries.append([name, sum(parts) + SAVED_TOKEN_BONUS * (len(run) - 1)])
