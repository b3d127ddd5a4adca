"""Detection of the languages of texts, and of pairs with swapped sides, without a model.

A language is recognized by its script, by letters that no related language has, and in Latin script
by its frequent words. The file itself shows which pairs are swapped: most words occur in only one
of its columns, so that a pair is swapped if each side has the words of the other column. This
method needs no list of words and works for any two languages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from interlingua.corpus.cleaning.language_evidence import (
    KANA_SHARE,
    script_counts,
    usual_language,
)
from interlingua.corpus.cleaning.named_languages import likely_latin_language
from interlingua.corpus.cleaning.scripts import BLOCKS

_LETTERS = {
    "Cyrl": {
        "ukr_Cyrl": "їєґ",
        "bel_Cyrl": "ў",
        "mkd_Cyrl": "ѓќѕ",
        "srp_Cyrl": "ђћ",
        "kaz_Cyrl": "әұқғ",
        "tat_Cyrl": "җә",
        "mon_Cyrl": "өү",
        "tgk_Cyrl": "ҷӣӯҳ",
        "rus_Cyrl": "ыэё",
        "bul_Cyrl": "ъ",
    },
    "Arab": {
        "urd_Arab": "ٹڈڑےہں",
        "uig_Arab": "ۇۋې",
        "ckb_Arab": "ۆڕڵ",
        "pbt_Arab": "ښڼځ",
        "pes_Arab": "پچژگی",
        "arb_Arab": "ةىإأ",
    },
}
"""Script -> language -> letters that distinguish it from its relatives; the first language
with enough of its letters decides."""
_LEAST_LETTERS = 0.002
"""Minimum share of these letters among the letters of the texts."""
_LEAST_SCRIPT = 0.6
"""Minimum share of the letters in a script for a text to count as written in it."""
_LEAST_MET = 8
"""The column of a word is learned only if at least this many texts contain the word."""
_OWN_COLUMN = 0.9
"""Minimum share of the occurrences of a word in one column for the word to belong to the column."""
_CLEARLY = 3
"""Ratio of words of the other column to words of its own column, above which a pair is swapped."""
_PARTS = 5
_LEAST_FIRST = 100
"""Minimum number of pairs in the first part, from which columns are learned at first."""
_ROUNDS = 2
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile("[^\\s\\d!-/:-@\\[-`{-~«»“”„…।]+")
"""Pattern of words, including combining marks, which are not letters."""


def script_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of the letters by script, the most frequent first; empty without letters."""
    counts = script_counts(texts)
    total = float(counts.sum())
    if not total:
        return {}
    shares = dict(zip(BLOCKS, (counts[1:-1] / total).tolist(), strict=True))
    found = sorted(shares.items(), key=lambda item: -item[1])
    return {script: round(share, 4) for script, share in found if share > 0}


def guess_language(texts: Sequence[str]) -> str | None:
    """Return the code of the language of most texts; None if unknown."""
    shares = script_shares(texts)
    if not shares:
        return None
    eastern = {name: shares.get(name, 0.0) for name in ("Hani", "Kana", "Hang")}
    if sum(eastern.values()) >= _LEAST_SCRIPT:
        if eastern["Hang"] >= max(eastern["Hani"], eastern["Kana"]):
            return "kor_Hang"
        if eastern["Kana"] > KANA_SHARE:
            return "jpn_Jpan"
        return "zho_Hans"
    script, share = next(iter(shares.items()))
    if share < _LEAST_SCRIPT:
        return None
    if script == "Latn":
        return likely_latin_language(texts)
    if script in _LETTERS:
        return _by_letters(texts, _LETTERS[script])
    usual = usual_language(script)
    if usual is None:
        return None
    return usual.code


def _by_letters(texts: Iterable[str], letters: dict[str, str]) -> str | None:
    """Return the first language of which enough distinctive letters occur; None without one."""
    counts = Counter("".join(texts).casefold())
    total = sum(count for letter, count in counts.items() if letter.isalpha())
    for code, own in letters.items():
        if sum(counts[letter] for letter in own) >= _LEAST_LETTERS * total:
            return code
    return None


def swapped_pairs(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
    """Return which pairs have their sides swapped, compared with most pairs.

    Args:
        pairs: source and target of each pair, from all parts of the file.

    Returns:
        For each pair whether it is swapped; None if its words give no evidence.
    """
    words = [(_words(source), _words(target)) for source, target in pairs]
    # At first, columns are learned from the first part only: swapped pairs mostly follow one
    # another, so that a part has one direction even if half of the file is swapped.
    columns = _columns_of_words(words[: max(len(words) // _PARTS, _LEAST_FIRST)])
    found = [_is_swapped(side, columns) for side in words]
    for _ in range(_ROUNDS):
        columns = _columns_of_words(map(_turned, words, found))
        found = [_is_swapped(side, columns) for side in words]
    # Most pairs are right.
    if found.count(True) > found.count(False):
        opposite = {True: False, False: True, None: None}
        return [opposite[swap] for swap in found]
    return found


def _turned(
    pair: tuple[frozenset[str], frozenset[str]], is_swapped: bool | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Return a pair in the direction of most pairs."""
    if is_swapped:
        return pair[1], pair[0]
    return pair


def _words(text: str) -> frozenset[str]:
    """Return the different words of a text, or its letters in scripts without spaces."""
    folded = text.casefold()
    letters = frozenset(filter(str.isalpha, folded))
    if _SPACELESS.search(folded):
        return letters
    # Unicode blocks distinguish scripts even in texts that share no words with other texts.
    blocks = frozenset([f"block {ord(letter) >> 8}" for letter in letters])
    return blocks.union(_WORD.findall(folded))


def _columns_of_words(
    words: Iterable[tuple[frozenset[str], frozenset[str]]],
) -> dict[str, int]:
    """Return the column, 0 or 1, of each word that nearly always occurs in the same one."""
    met = (Counter[str](), Counter[str]())
    for source, target in words:
        # A word in both is a name, or the pair is a copy.
        met[0].update(source - target)
        met[1].update(target - source)
    columns = {}
    for word in met[0].keys() | met[1].keys():
        total = met[0][word] + met[1][word]
        if total < _LEAST_MET:
            continue
        for column in (0, 1):
            if met[column][word] >= _OWN_COLUMN * total:
                columns[word] = column
    return columns


def _is_swapped(
    pair: tuple[frozenset[str], frozenset[str]], columns: dict[str, int]
) -> bool | None:
    """Return whether each side has the words of the other column; None if unknown."""
    right = 0
    of_other = []
    for own, side in enumerate(pair):
        met = [columns[word] for word in side - pair[1 - own] if word in columns]
        right += met.count(own)
        of_other.append(met.count(1 - own))
    wrong = sum(of_other)
    if all(of_other) and wrong > _CLEARLY * right:
        return True
    if right > wrong:
        return False
    return None
