r"""Language fairness of rankings from a mixed pool: does each language get its share?

A question in Thai may be answered in eleven languages. A ranking is fair if, among its first 20
passages, each language has the share that it has among the relevant passages. Many encoders rank
passages of the question's own language too high, and passages of other languages too low. Let
$p_\ell$ be the share of language $\ell$ among the first 20 and $r_\ell$ its share of the relevant
passages, both means over the questions of one language. Fairness is one minus the total variation
distance of these distributions, which is their overlap:

$$1 - \frac{1}{2} \sum_\ell |p_\ell - r_\ell| = \sum_\ell \min(p_\ell, r_\ell)$$

It is 1 if all languages have their share, and $r_\ell$ if all ranked passages are in language
$\ell$. The shares are means over the questions of one language, because own-language bias has the
same direction in all of them. Means over questions of different languages are not used, because
their biases would cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from interlingua.evaluation.metrics.ranking import Qrels, Run, top

FAIRNESS_DEPTH = 20
"""Passages of a ranking that count."""
FAIRNESS = f"language_fairness_at_{FAIRNESS_DEPTH}"
RANKED_TABLE = f"language_share_of_first_{FAIRNESS_DEPTH}"
RELEVANT_TABLE = "language_share_of_relevant"


class LanguageShares(NamedTuple):
    """Shares of languages; each mapping sums to 1, or is all 0 if nothing was ranked.

    Attributes:
        ranked: language -> its share of the first passages, mean over questions.
        relevant: language -> its share of the relevant passages, mean over the same questions.
    """

    ranked: Mapping[str, float]
    relevant: Mapping[str, float]

    def tables(self, row: str) -> dict[str, dict[str, float]]:
        """Return both shares as rows of tables; ``th-de`` is German's share for Thai queries."""
        kinds = {RANKED_TABLE: self.ranked, RELEVANT_TABLE: self.relevant}
        tables = {}
        for name, shares in kinds.items():
            tables[name] = {f"{row}-{language}": share for language, share in shares.items()}
        return tables


def ranked_language_shares(
    qrels: Qrels, run: Run, languages: Sequence[str], *, depth: int = FAIRNESS_DEPTH
) -> LanguageShares:
    """Compute the shares of languages among the first passages and among the relevant ones.

    Args:
        qrels: judged questions of one language; ids of passages are ``language/id``.
        run: rankings over the pool of all languages; a question without one is left out, as it
            favors no language.
        languages: all languages of the pool.
        depth: passages of a ranking that count; fewer if it is shorter.
    """
    ranked = dict.fromkeys(languages, 0.0)
    relevant = dict.fromkeys(languages, 0.0)
    # a question without a ranking favors no language
    questions = [query for query in qrels if run.get(query)]
    for query in questions:
        first = top(run[query], depth)
        # every question counts the same, however many passages its ranking has
        for passage in first:
            ranked[_language(passage)] += 1 / len(first) / len(questions)
        right = [passage for passage, grade in qrels[query].items() if grade > 0]
        for passage in right:
            relevant[_language(passage)] += 1 / len(right) / len(questions)
    return LanguageShares(ranked, relevant)


def language_fairness(shares: LanguageShares) -> float:
    """Compute one minus the total variation distance of the two distributions, 0 to 1.

    It is 0 if nothing was ranked.
    """
    return sum(min(share, shares.relevant[language]) for language, share in shares.ranked.items())


def _language(passage: str) -> str:
    return passage.partition("/")[0]
