"""Contrastive objectives over sentence embeddings: a translation is told from the other sentences of the batch."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F


def cosine_similarities(x: Float[Tensor, "b d"], y: Float[Tensor, "n d"]) -> Float[Tensor, "b n"]:
    """Cosine of every x with every y, 0 where either is the zero vector; in float32 or wider, also under autocast."""
    with torch.autocast(x.device.type, enabled=False):  # a temperature of 0.1 would multiply the rounding by ten
        return F.normalize(_wide(x), dim=-1) @ F.normalize(_wide(y), dim=-1).T


def bidirectional_contrastive(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "b d"],
    *,
    temperature: float = 0.1,
    excluded: Bool[Tensor, "b b"] | None = None,
) -> Float[Tensor, ""]:
    r"""Sentence-level contrastive objective in both directions, EMS (Mao et al. 2023), Eq. (8) over B.

    .. math:: -\frac1B \sum_j \Bigl( \log\frac{e^{s_{jj}/T}}{\sum_k e^{s_{jk}/T}}
              + \log\frac{e^{s_{jj}/T}}{\sum_k e^{s_{kj}/T}} \Bigr), \qquad s_{jk} = \cos(x_j, y_k)

    *Symbols*: h(S_l) ``x``, h(S_l') ``y``, T ``temperature``. Negatives come from the other side only.

    Args:
        x: embeddings of one side.
        y: embeddings of the other; row i translates row i of ``x``.
        temperature: T > 0, in cosine units.
        excluded: pairs that are not to count as negatives (other translations of the same sentence); the diagonal
            is never excluded.

    Returns:
        Nats: the sum of both directions, each a mean over B.

    Raises:
        ValueError: the temperature is not positive.
    """
    return additive_margin_softmax(x, y, margin=0.0, temperature=temperature, excluded=excluded)


def additive_margin_softmax(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "b d"],
    *,
    margin: float = 0.3,
    temperature: float = 0.1,
    margin_after_temperature: bool = False,
    excluded: Bool[Tensor, "b b"] | None = None,
) -> Float[Tensor, ""]:
    r"""Bidirectional additive-margin softmax over in-batch negatives, LaBSE (Feng et al. 2022), Eq. (1)-(2).

    .. math:: -\frac1B \sum_i \Bigl( \log\frac{e^{(\phi_{ii}-m)/\tau}}{e^{(\phi_{ii}-m)/\tau}
              + \sum_{k\ne i} e^{\phi_{ik}/\tau}} + \text{the same with } \phi_{ki} \Bigr)

    *Symbols*: phi_ij = cos(x_i, y_j); m ``margin``, taken from the positives only; tau ``temperature``.

    Differs from the paper: LaBSE names no temperature beside the margin; EMS uses m = 0.3 and tau = 0.1 without saying
    in which order. The margin is taken before the division unless ``margin_after_temperature``.

    Args:
        x: embeddings of one side.
        y: embeddings of the other; row i translates row i of ``x``.
        margin: m, in cosine units (in logits with ``margin_after_temperature``).
        temperature: tau > 0, in cosine units.
        margin_after_temperature: positives are phi / tau - m in place of (phi - m) / tau.
        excluded: as in ``bidirectional_contrastive``.

    Returns:
        Nats: the sum of both directions, each a mean over B.

    Raises:
        ValueError: the temperature is not positive.
    """
    logits = _scaled(cosine_similarities(x, y), temperature)
    taken = margin if margin_after_temperature else margin / temperature
    logits = logits - taken * torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    if excluded is not None:
        logits = logits.masked_fill(_without_diagonal(excluded), -torch.inf)
    positives = torch.arange(len(logits), device=logits.device)
    return F.cross_entropy(logits, positives) + F.cross_entropy(logits.T, positives)


def infonce(
    queries: Float[Tensor, "b d"],
    passages: Float[Tensor, "b d"],
    *,
    hard_negatives: Float[Tensor, "n d"] | None = None,
    temperature: float = 1.0,
    cosine: bool = True,
    excluded: Bool[Tensor, "b b"] | None = None,
) -> Float[Tensor, ""]:
    r"""InfoNCE from queries to passages, multilingual-IR contrastive learning (Hu et al. 2022), Eq. (1).

    .. math:: -\frac1B \sum_i \log \frac{e^{s(q_i, p_i)/T}}{\sum_k e^{s(q_i, p_k)/T} + \sum_n e^{s(q_i, n_n)/T}}

    Args:
        queries: q.
        passages: p; row i answers query i, the other rows are its negatives.
        hard_negatives: further negatives, shared by all queries.
        temperature: T > 0.
        cosine: s is the cosine, else the inner product as in DPR.
        excluded: pairs of query and passage that are not to count as negatives; the diagonal is never excluded.

    Returns:
        Nats, a mean over B.

    Raises:
        ValueError: the temperature is not positive.
    """
    candidates = passages if hard_negatives is None else torch.cat([passages, hard_negatives])
    similarity = cosine_similarities(queries, candidates) if cosine else queries @ candidates.T
    logits = _scaled(similarity, temperature)
    if excluded is not None:
        spared = F.pad(_without_diagonal(excluded), (0, len(candidates) - len(passages)))  # hard negatives stay
        logits = logits.masked_fill(spared, -torch.inf)
    return F.cross_entropy(logits, torch.arange(len(queries), device=queries.device))


def semantic_contrastive(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "b d"],
    *,
    temperature: float = 0.1,
    excluded: Bool[Tensor, "b b"] | None = None,
) -> Float[Tensor, ""]:
    r"""NT-Xent over the 2B sentences of B translation pairs, multilingual-IR contrastive learning, Eq. (2).

    .. math:: -\frac1{2B} \sum_{i=1}^{2B} \log
              \frac{e^{\cos(z_i, z_{i'})/\tau}}{\sum_{k \ne i} e^{\cos(z_i, z_k)/\tau}}, \qquad z = [x; y]

    *Symbols*: i' is the translation of i; tau ``temperature``. Unlike EMS, sentences of the own side are negatives too.

    Args:
        x: embeddings of one side.
        y: embeddings of the other; row i translates row i of ``x``.
        temperature: tau > 0, in cosine units.
        excluded: pairs whose sentences, of either side, are not to count as negatives of one another.

    Returns:
        Nats, a mean over the 2B anchors.

    Raises:
        ValueError: the temperature is not positive.
    """
    z = torch.cat([x, y])
    logits = _scaled(cosine_similarities(z, z), temperature).fill_diagonal_(-torch.inf)
    if excluded is not None:
        logits = logits.masked_fill(_without_diagonal(excluded).repeat(2, 2), -torch.inf)
    return F.cross_entropy(logits, torch.arange(len(z), device=z.device).roll(len(x)))


def _without_diagonal(excluded: Bool[Tensor, "b b"]) -> Bool[Tensor, "b b"]:
    return excluded & ~torch.eye(len(excluded), dtype=torch.bool, device=excluded.device)


def _scaled(similarity: Float[Tensor, "b n"], temperature: float) -> Float[Tensor, "b n"]:
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}; it must be positive")
    return _wide(similarity) / temperature


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()
