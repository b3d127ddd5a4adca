"""Probabilities of the links that ``/align`` finds, by calibrations of ``interlingua score``.

The linked texts are scored as ``interlingua score`` scores pairs, and the score's calibration gives
the probability that both texts are translations. A calibration holds for one language pair, one
model with its prompt and data type, and one way of scoring. If no calibration fits a
request, its links have no probability, and the reply says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from interlingua.corpus.formats.bitext import TextPair
from interlingua.encoder.protocol import Encode
from interlingua.errors import ConfigError, InterlinguaError
from interlingua.mining.calibration.calibration import (
    Calibration,
    choose_calibration,
    load_calibrations,
)
from interlingua.mining.score import MIN_PAIRS_PER_NEIGHBOR, BitextScorer, ScoreConfig
from interlingua.serving.model import ServedModel
from interlingua.storage.files import PathLike
from interlingua.storage.locate import hub_name, locate

OWN_FILE = "calibration.json"
"""File in a model's folder that is read if no other file is named."""
LEAST_LINKS = 40
"""Minimum number of links for estimating the share of right links; with fewer links, the share of
the calibration is used."""
DTYPE = "dtype="
"""Prefix of the data type in a model's identity."""
NO_FILE = (
    "this server has no calibration; create one with `interlingua score --learn` and"
    " start the server with --calibration FILE"
)
NO_LANGUAGES = (
    "the languages are missing; send both, because a calibration is for one language pair"
)


@dataclass(frozen=True, slots=True)
class LinkProbabilities:
    """Probabilities of the pairs of one request."""

    values: list[float | None]
    """Probabilities that the pairs are translations, from 0 to 1; None if unknown."""
    prior: float | None = None
    """Share of right pairs that is expected before the scores are known."""
    reason: str | None = None
    """The reason for missing probabilities."""


class LinkCalibrations:
    """The calibrations of a server.

    Args:
        model: the served model; at least one calibration must belong to it.
        path: a file of calibrations.

    Raises:
        DataError: the file is missing or holds no calibrations.
        ConfigError: all of them are of other models, or of scores that are made by mining.
    """

    def __init__(self, model: ServedModel, path: PathLike) -> None:
        self.model = model
        self.name = Path(path).name
        read = load_calibrations(path)
        # Scores of another model are on another scale.
        self._known = {pair: one for pair, one in read.items() if _digest(one) == model.digest}
        if not self._known:
            raise ConfigError(
                f"{path}: all calibrations are for other models; create one: interlingua score"
                f" MODEL BITEXT --learn {path} --parallel TRUSTED"
            )
        # Check all of them now, so that an unusable file is reported before the first request.
        for pair, one in self._known.items():
            try:
                ScoreConfig.of_scoring(one.scoring)
            except ConfigError as error:
                raise ConfigError(f"{path}: {pair}: {error}") from error

    @property
    def language_pairs(self) -> list[str]:
        """Language pairs such as ``deu_Latn-eng_Latn``; each holds in both directions."""
        return sorted(self._known)

    def probabilities(
        self,
        pairs: Sequence[tuple[str, str]],
        languages: tuple[str | None, str | None],
        *,
        prompt: str | None,
        encode: Encode,
    ) -> LinkProbabilities:
        """Score pairs and convert the scores to probabilities.

        Args:
            pairs: linked texts, none of them blank.
            languages: of both sides, in any code.
            prompt: that the texts are embedded with; None = the server's.
            encode: computes vectors of length 1.
        """
        source, target = languages
        if source is None or target is None:
            return _none(pairs, NO_LANGUAGES)
        try:
            calibration = choose_calibration(self._known, self.name, (source, target))
            self._check_way(calibration, prompt)
            config = ScoreConfig.of_scoring(calibration.scoring)
        except InterlinguaError as error:
            return _none(pairs, str(error))
        # A margin compares a pair with the nearest of all pairs of the request.
        if config.too_few(len(pairs)):
            least = MIN_PAIRS_PER_NEIGHBOR * config.k
            return _none(
                pairs,
                f"a margin requires at least {least} pairs; send more pairs, or use a calibration"
                " learned with --cosine",
            )
        rows = [TextPair(one, other, source, target) for one, other in pairs]
        blocks = [block.scores for block in BitextScorer(encode, config).score(rows)]
        if not blocks:
            return LinkProbabilities([], calibration.prior)
        scores = np.concatenate(blocks)
        # The share of right pairs differs from text to text.
        prior = calibration.prior
        if len(scores) >= LEAST_LINKS and calibration.basis != "gold":
            prior = calibration.estimate_share(scores)
        values = calibration.probability(scores, prior=prior).round(6).tolist()
        return LinkProbabilities(values, prior)

    def _check_way(self, calibration: Calibration, prompt: str | None) -> None:
        """Raise ConfigError if the calibration is of another prompt or data type."""
        dtype, made = _way(calibration)
        here = self.model.prompt_text(prompt).strip()
        if dtype not in self.model.close_dtypes or made != here:
            raise ConfigError(
                f"{self.name}: expected vectors with {_described(dtype, made)}, as when the"
                f" calibration was learned, found {_described(self.model.dtype, here)}; learn it"
                " again with the --dtype and --prompt of this server"
            )


def own_calibration(model: str) -> Path | None:
    """Return the file of calibrations in a model's folder, or None if there is none.

    Args:
        model: a model directory, a training run or ``hf:owner/name``, which has none.
    """
    if hub_name(model) is not None:
        return None
    path = locate(model) / OWN_FILE
    if not path.is_file():
        return None
    return path


def without_calibration(pairs: Sequence[tuple[str, str]]) -> LinkProbabilities:
    """Return the result for pairs on a server without calibrations."""
    return _none(pairs, NO_FILE)


def _none(pairs: Sequence[tuple[str, str]], reason: str) -> LinkProbabilities:
    return LinkProbabilities([None] * len(pairs), reason=reason)


def _digest(calibration: Calibration) -> str:
    """Return the first word of a model's identity."""
    return calibration.model.partition(" ")[0]


def _way(calibration: Calibration) -> tuple[str, str]:
    """Return the data type (default float32) and the prompt in a model's identity."""
    words = calibration.model.partition(" ")[2].strip()
    if not words.startswith(DTYPE):
        return "float32", words
    dtype, _, prompt = words.removeprefix(DTYPE).partition(" ")
    return dtype, prompt.strip()


def _described(dtype: str, prompt: str) -> str:
    if not prompt:
        return f"{dtype} and no prompt"
    return f"{dtype} and the prompt {prompt!r}"
