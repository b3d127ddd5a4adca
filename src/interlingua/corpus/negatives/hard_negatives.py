"""Hard negatives in the manner of xsim++ (Chen et al. 2023), for any language and domain.

A negative is a sentence with one thing altered: a number, a name, a negation, a word replaced by
its antonym, or the places of two words. It is made by rules, not by people or a model, and is
sometimes ungrammatical or, if word order is free, still a translation. The rules differ from those
of xsim++: they need neither WordNet nor a tagger, so that they work for any language. Results with
the two sets of rules are not comparable.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.keys import EMPTY_KEY, text_keys
from interlingua.corpus.negatives.alterations import other_numbers, other_order, other_phrases
from interlingua.corpus.negatives.contrasts import contrasts
from interlingua.corpus.negatives.entities import Gazetteer
from interlingua.errors import ConfigError
from interlingua.runtime.portions import portions

NEGATIVE_KINDS = ("number", "entity", "negation", "antonym", "word_order")
Alteration = Callable[[str, random.Random], Iterator[str]]
_PORTION = 512
"""Sentences worked on at once."""


class Altered(NamedTuple):
    """A sentence that nearly equals another one, but has another meaning.

    Attributes:
        text: one line.
        original: the sentence that it was made from; empty if the files don't name it.
        kind: of the alteration, for example ``number``.
    """

    text: str
    original: str
    kind: str


def hard_negatives(
    texts: Iterable[str],
    language: str,
    *,
    kinds: Sequence[str] = NEGATIVE_KINDS,
    per_sentence: int = 5,
    seed: int = 1,
) -> Iterator[Altered]:
    """Yield altered forms of the sentences of a corpus, sentence by sentence.

    No negative has the ``text_key`` of any sentence of the corpus or of another negative. The draws
    for a sentence depend only on the seed, the kind and the sentence, and the names that replace
    others depend only on the corpus. Memory holds a key for each sentence and negative, and the
    names.

    Args:
        texts: a list, or an object that reads its sentences again each time: they are iterated two
            or three times.
        language: language of the texts, any code.
        kinds: of alterations; negation and antonyms need a language that ``contrasts`` knows.
        per_sentence: maximum number of negatives of a sentence per kind.
        seed: of all draws.

    Raises:
        ConfigError: a kind is unknown, or ``per_sentence`` is not positive.
        TypeError: ``texts`` can be iterated only once.
    """
    check_request(kinds, per_sentence)
    if isinstance(texts, Iterator):
        raise TypeError(
            "texts: expected an object that can be read several times, found an iterator; pass a"
            " list"
        )
    alterations = _alterations(texts, language, kinds)
    # A negative that equals a sentence of the corpus would be the right answer to another query.
    seen = {int(EMPTY_KEY)}
    for portion in portions(texts, _PORTION):
        seen.update(text_keys(portion).tolist())
    for portion in portions(texts, _PORTION):
        drafts = _drafts(portion, alterations, seed, 2 * per_sentence)
        keys = text_keys([draft.text for draft in drafts]).tolist()
        counts: dict[tuple[str, str], int] = {}
        for draft, key in zip(drafts, keys, strict=True):
            made = counts.get((draft.original, draft.kind), 0)
            if made < per_sentence and key not in seen:
                counts[draft.original, draft.kind] = made + 1
                seen.add(key)
                yield draft


class Alterer:
    """A generator of altered forms of single sentences, which come one at a time, as in training.

    Args:
        texts: sentences of the language from which names are taken; read only if ``kinds`` has
            ``entity``.
        language: language of the texts, any code.
        kinds: of alterations; those without rules for the language are left out.

    Raises:
        ConfigError: a kind is unknown.
    """

    def __init__(
        self, texts: Iterable[str], language: str, *, kinds: Sequence[str] = NEGATIVE_KINDS
    ) -> None:
        check_request(kinds, 1)
        self._alterations = _alterations(texts, language, kinds)

    def forms(self, text: str, count: int, draw: random.Random) -> list[Altered]:
        """Return different altered forms of a sentence, at most ``count``.

        Each kind yields one form before any kind yields a second one. The forms depend only on the
        sentence, the names and ``draw``. None has the ``text_key`` of the sentence or of another
        form.
        """
        # The order of kinds is drawn, so that a small count does not always have the same kinds.
        order = draw.sample(sorted(self._alterations), len(self._alterations))
        by_kind = {kind: _forms(self._alterations[kind], text, draw, count) for kind in order}
        drafts = []
        for place in range(count):  # the first form of each kind, then the second ones, ...
            for kind in order:
                if place < len(by_kind[kind]):
                    drafts.append(Altered(by_kind[kind][place], text, kind))
        keys = text_keys([text, *(draft.text for draft in drafts)]).tolist()
        seen = {keys[0], int(EMPTY_KEY)}
        found: list[Altered] = []
        for draft, key in zip(drafts, keys[1:], strict=True):
            if key not in seen and len(found) < count:
                seen.add(key)
                found.append(draft)
        return found


def check_request(kinds: Sequence[str], per_sentence: int) -> None:
    """Check the kinds and the number per sentence.

    Raises:
        ConfigError: see ``hard_negatives``.
    """
    unknown = [kind for kind in kinds if kind not in NEGATIVE_KINDS]
    if unknown or not kinds:
        raise ConfigError(
            f"kinds: expected one or more of {', '.join(NEGATIVE_KINDS)}, found"
            f" {', '.join(unknown) or 'none'}"
        )
    if per_sentence < 1:
        raise ConfigError(f"per_sentence: expected a number of at least 1, found {per_sentence}")


def _alterations(
    texts: Iterable[str], language: str, kinds: Sequence[str]
) -> dict[str, Alteration]:
    """Return the alterations that are possible in this language."""
    script = resolve_language(language).script
    possible: dict[str, Alteration] = {
        "number": other_numbers,
        "word_order": partial(other_order, script=script),
    }
    for kind, opposites in contrasts(language).items():
        possible[kind] = partial(other_phrases, opposites=opposites)
    if "entity" in kinds:  # the only kind that reads the texts
        possible["entity"] = Gazetteer(texts, language).other_names
    return {kind: possible[kind] for kind in kinds if kind in possible}


def _drafts(
    texts: Sequence[str], alterations: dict[str, Alteration], seed: int, count: int
) -> list[Altered]:
    """Return at most ``count`` forms per sentence and kind, not compared with other sentences."""
    drafts = []
    for text in texts:
        for kind, alteration in alterations.items():
            # A separate generator, so that draws do not depend on other sentences or kinds.
            draw = random.Random(f"{seed}\0{kind}\0{text}")
            drafts += [Altered(form, text, kind) for form in _forms(alteration, text, draw, count)]
    return drafts


def _forms(alteration: Alteration, text: str, draw: random.Random, count: int) -> list[str]:
    """Return the first different forms of a sentence.

    Few alterations have many forms, so the search is short.
    """
    # Some alterations never end, and repeat themselves if a sentence has few forms.
    return list(dict.fromkeys(islice(alteration(text, draw), 4 * count)))[:count]
