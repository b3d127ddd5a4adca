"""Matryoshka representation learning (Kusupati et al. 2022): prefixes that are embeddings too.

An ordinary loss spreads what it learns over all elements of an embedding, so none can be left out.
Here the encoder runs once. The method's own loss is then computed for several prefixes of the
sentence embeddings (the first d elements, for each d of ``dims``), and these losses are added up.
Early elements are part of every prefix and receive the gradients of all of these losses, so what
matters most ends up there, and an embedding can be cut to one of the widths after training.

Only terms that read sentence embeddings and no other output of the encoder have prefixes; a method
calls ``Objective.nested`` for these. Terms that read token states, such as masked language
modeling, are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.config import Above, AtLeast, CheckedSettings
from interlingua.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Matryoshka(CheckedSettings):
    """The widths M that embeddings can be cut to, and the weight of each width's loss.

    Raises:
        ConfigError: the widths are not in falling order, or there is not one weight per width.
    """

    dims: tuple[Annotated[int, AtLeast(1)], ...]
    """M, elements of each prefix, the largest first; the first is the width of the whole
    embedding."""
    weights: tuple[Annotated[float, Above(0)], ...] = ()
    """c_m, weight of each prefix's loss, in the order of ``dims``; default: 1 each, as in the
    paper."""

    def __post_init__(self) -> None:
        # The first one is the whole embedding, so that its loss is part of the sum.
        falling = all(first > second for first, second in pairwise(self.dims))
        if not self.dims or not falling:
            raise ConfigError(
                f"matryoshka is {list(self.dims)}; list each width once, from the largest to the"
                " smallest, for example [384, 256, 128, 64]"
            )
        if self.weights and len(self.weights) != len(self.dims):
            raise ConfigError(
                f"matryoshka_weights is {list(self.weights)}; expected {len(self.dims)} numbers,"
                " one for each width of matryoshka"
            )

    def check(self, weights: Mapping[str, float], width: int) -> None:
        """Refuse a method or an encoder that is incompatible with these widths.

        Args:
            weights: weights of the method's terms that have prefixes, by the name of the option.
            width: elements of the whole embedding.

        Raises:
            ConfigError: all these terms are switched off, or the largest width is not ``width``.
        """
        if not any(weights.values()):
            raise ConfigError(
                f"matryoshka: all terms with prefixes are switched off ({' and '.join(weights)}"
                " are 0); set one above 0, or remove matryoshka"
            )
        if self.dims[0] != width:
            raise ConfigError(
                f"matryoshka starts with {self.dims[0]}, but the encoder's embeddings have"
                f" {width} elements; start the list with {width}"
            )

    def losses(
        self, loss: Callable[..., Float[Tensor, ""]], *embeddings: Float[Tensor, "_ d"]
    ) -> dict[int, Float[Tensor, ""]]:
        r"""Compute the weighted loss of each prefix, Kusupati et al. (2022), Eq. (1).

        .. math:: \sum_{m \in M} c_m \, L(W^{(m)} z_{1:m}; y)

        *Symbols*: M ``dims``; c_m ``weights``; z ``embeddings``; L ``loss``.

        Differs from the paper: if a loss has a head, W^(m) is the first m columns of one W, the
        paper's MRL-E (see ``full_width``).

        Args:
            loss: function of embeddings of any width.
            embeddings: whole embeddings; for each m, all of them are cut to the same width.

        Returns:
            c_m L by m; they add up to the equation.
        """
        named = self.losses_by_name(lambda *prefixes: {"": loss(*prefixes)}, *embeddings)
        return named[""]  # the only one, so its name does not matter

    def losses_by_name(
        self,
        losses: Callable[..., Mapping[str, Float[Tensor, ""]]],
        *embeddings: Float[Tensor, "_ d"],
    ) -> dict[str, dict[int, Float[Tensor, ""]]]:
        """Compute the weighted loss of each prefix for several losses that share work.

        Args:
            losses: function that returns the losses by name, for embeddings of any width.
            embeddings: cut to the same width each time.

        Returns:
            c_m L by name and m.
        """
        weights = self.weights or (1.0,) * len(self.dims)
        named: dict[str, dict[int, Tensor]] = {}
        for dim, weight in zip(self.dims, weights, strict=True):
            prefixes = [embedding[..., :dim] for embedding in embeddings]  # z_1:m
            for name, loss in losses(*prefixes).items():
                named.setdefault(name, {})[dim] = weight * loss  # c_m L
        return named


def nested_together(
    matryoshka: Matryoshka | None,
    losses: Callable[..., Mapping[str, Float[Tensor, ""]]],
    *embeddings: Float[Tensor, "_ d"],
) -> dict[str, Float[Tensor, ""] | Mapping[int, Float[Tensor, ""]]]:
    """Compute terms that share work, as ``Objective.nested`` does for a single one.

    Args:
        matryoshka: None = only whole embeddings.
        losses: function that returns the terms by name, for embeddings of any width.
        embeddings: those of the sentences, and the embeddings to compare them with.
    """
    if matryoshka is None:
        return {**losses(*embeddings)}
    return {**matryoshka.losses_by_name(losses, *embeddings)}


def full_width(prefix: Float[Tensor, "b m"], width: int) -> Float[Tensor, "b d"]:
    """Pad a prefix with zeros, for a head that reads whole embeddings.

    The product of a head's matrix W with the padded prefix is W[:, :m] times the prefix: the tied
    weights of MRL-E, section 3 of Kusupati et al. (2022), which need no head for each width.

    Args:
        prefix: the first m elements, or all of them.
        width: d.
    """
    return F.pad(prefix, (0, width - prefix.shape[-1]))
