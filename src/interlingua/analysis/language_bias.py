"""Language bias: whether sentences prefer their own language in a pool of all languages."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from interlingua.analysis.record import Measure, mean_measure
from interlingua.evaluation.metrics.pool import Pool


def language_bias(pool: Pool, languages: Sequence[str]) -> list[Measure]:
    """Compute how often the nearest sentence is of the query's own language, and the cost of it.

    - ``same_language_bias``: the share of sentences whose nearest other sentence is in their own
      language, although their translations into all other languages are in the pool.
    - ``same_language_bias_without_translations``: the same with the query's translations taken out.
      Every language then has equally many candidates, so a space without language would give 1 / L.
    - ``accuracy_own_pool``: P@1 of retrieving a sentence's translation among the lines of the
      translation's language, mean over all ordered pairs of languages.
    - ``accuracy_mixed_pool``: P@1 of retrieving the same translation among the other lines of *all*
      languages, including the query's language; the query's other translations are not candidates,
      so this is never easier. This is the setting of LAReQA (Roy et al. 2020); its authors call
      the loss language bias.
    - ``mixed_pool_drop``: ``accuracy_own_pool`` minus ``accuracy_mixed_pool``.

    Args:
        pool: from ``search_pool``.
        languages: the codes of its languages.
    """
    share = functools.partial(mean_measure, languages=languages, unit="share")
    # (languages, lines): for each line the mean over all other languages.
    alone = pool.accuracy_alone
    among_all = pool.accuracy_among_all
    return [
        share(
            "same_language_bias",
            pool.own_language,
            better="lower",
            ideal=0.0,
            definition="share of sentences with a nearest other sentence of their own language,"
            " although their translations are in the pool",
        ),
        share(
            "same_language_bias_without_translations",
            pool.own_language_without_translations,
            better="lower",
            ideal=1 / len(languages),
            definition="share of sentences whose nearest sentence, with translations left out, is"
            " of their own language",
        ),
        share(
            "accuracy_own_pool",
            alone,
            better="higher",
            definition="P@1 of the translation among the lines of its own language, mean over"
            " ordered pairs",
        ),
        share(
            "accuracy_mixed_pool",
            among_all,
            better="higher",
            definition="P@1 of the translation among the other lines of all languages together",
        ),
        share(
            "mixed_pool_drop",
            alone - among_all,
            better="lower",
            ideal=0.0,
            definition="what P@1 loses when the other languages' lines join the candidates",
        ),
    ]
