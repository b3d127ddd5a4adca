"""Learning from a bank of a teacher's vectors: contrast, soft labels and hard negatives.

A student's vector s_i has one target z_i, the teacher's vector of the same meaning, and a bank of n
other vectors t_j of the teacher. ``contrast_with_bank`` and ``soft_labels`` both read the
similarities of students and bank, which are one matrix product. So a bank of tens of thousands of
vectors costs about as much as encoding a few sentences.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.functional.contrastive import check_temperature, widen
from interlingua.runtime.devices import on_device


def squared_distance(
    student: Float[Tensor, "b d"], target: Float[Tensor, "b d"]
) -> Float[Tensor, ""]:
    r"""Compute the squared distance to a teacher's unit vectors, OmniSONAR (2026), L_MSE, Eq. (11).

    .. math:: \frac1B \sum_i \lVert \hat s_i - \hat z_i \rVert^2
              = \frac1B \sum_i (2 - 2\cos(s_i, z_i))

    *Symbols*: s ``student``, z ``target``; a hat is the vector divided by its length.

    Differs from the paper: the distance is computed from unit vectors and not divided by d. So a
    weight of the loss has the same effect for every teacher.

    Returns:
        Between 0 and 4.
    """
    return (_unit(student) - _unit(target)).square().sum(dim=1).mean()


def mean_gap(
    student: Float[Tensor, "b d"], target: Float[Tensor, "b d"], language: Int64[Tensor, " b"]
) -> Float[Tensor, ""]:
    r"""Compute the squared distance of each language's mean to the mean of its targets.

    .. math:: \sum_l \frac{B_l}{B}
              \Bigl\lVert \frac1{B_l} \sum_{i \in l} (\hat s_i - \hat z_i) \Bigr\rVert^2

    A maximum mean discrepancy with a linear kernel (Gretton et al. 2012). The mean of a
    language contains what all its sentences have in common, which a contrast among candidates of
    one language can't detect. With a single sentence per language, the result equals
    ``squared_distance``.

    Args:
        student: s.
        target: z; row i is the target of student i.
        language: a number for the language of each row.

    Returns:
        Between 0 and 4.
    """
    # Languages are numbered 0, 1 ... in the order of their codes. To know how many there are, the
    # host would have to wait for the GPU. So ``sums`` and ``counts`` have one place for each row of
    # the batch, and places without a language stay zero.
    ordered, order = language.sort()
    place = torch.zeros_like(language).index_copy(0, order[1:], (ordered.diff() != 0).cumsum(0))
    gaps = _unit(student) - _unit(target)
    sums = torch.zeros_like(gaps).index_add(0, place, gaps)
    counts = torch.zeros_like(gaps[:, 0]).index_add(0, place, torch.ones_like(gaps[:, 0]))
    counts = counts.clamp(min=1)
    # B_l |sum / B_l|^2 = |sum|^2 / B_l
    total: Tensor = (sums.square().sum(dim=1) / counts).sum() / len(gaps)
    return total


def contrast_with_bank(
    positives: Float[Tensor, " b"],
    bank: Float[Tensor, "b n"],
    *,
    temperature: float,
    excluded: Bool[Tensor, "b n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Compute InfoNCE with the bank as negatives, OmniSONAR (2026), Eq. (9), student to teacher.

    .. math:: -\frac1B \sum_i \log \frac{e^{\cos(s_i, z_i)/\tau}}
              {e^{\cos(s_i, z_i)/\tau} + \sum_{j \in \mathrm{bank}} e^{\cos(s_i, t_j)/\tau}}

    Differs from the paper: the negatives are stored vectors in place of those of the batch.

    Args:
        positives: cosine of each student's vector with its own target.
        bank: cosines of each student's vector with the bank.
        temperature: tau > 0, in cosine units.
        excluded: pairs that are not negatives: the same sentence or another translation of it.

    Returns:
        Nats, a mean over B.

    Raises:
        ValueError: the temperature is not positive.
    """
    check_temperature(temperature)
    negatives = bank
    if excluded is not None:
        negatives = bank.masked_fill(excluded, -torch.inf)
    # The positive is in the first column.
    logits = torch.cat([positives[:, None], negatives], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


def soft_labels(
    positives: Float[Tensor, " b"],
    student: Float[Tensor, "b n"],
    teacher: Float[Tensor, "b n"],
    *,
    temperature: float,
    excluded: Bool[Tensor, "b n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Compute the divergence of a student's similarities from the teacher's: IMASCL's soft labels.

    .. math:: \frac1B \sum_i \sum_j p_{ij} \log \frac{p_{ij}}{q_{ij}}, \qquad
              p_i = \mathrm{softmax}_j(\cos(z_i, t_j)/\tau),
              \quad q_i = \mathrm{softmax}_j(\cos(s_i, t_j)/\tau)

    where j runs over the student's own target z_i (its cosine is 1 in the teacher's row) and over
    the bank.

    Differs from the paper (Park et al. 2024): the entropy of the labels is subtracted from the
    cross-entropy, so that the gradient is the same and the loss is 0 if the student agrees. A bank
    of the teacher's vectors replaces the students of the batch, and there is only one direction.

    Args:
        positives: cosine of each student's vector with its own target.
        student: cosines of each student's vector with the bank.
        teacher: cosines of each student's target with the bank; no gradient flows into them.
        temperature: tau > 0, the same for student and teacher, in cosine units.
        excluded: vectors of the bank to leave out: those of the target's own sentence, which is
            already in the first column.

    Returns:
        Nats, a mean over B.

    Raises:
        ValueError: the temperature is not positive.
    """
    check_temperature(temperature)
    # The first column is the target itself; in the teacher's row its cosine is 1.
    q = torch.cat([positives[:, None], student], dim=1) / temperature
    p = torch.cat([torch.ones_like(positives)[:, None], teacher], dim=1).detach() / temperature
    kept = torch.ones_like(q, dtype=torch.bool)
    if excluded is not None:
        kept[:, 1:] = ~excluded
    log_q, log_p = (row.masked_fill(~kept, -torch.inf).log_softmax(dim=1) for row in (q, p))
    gaps = torch.where(kept, log_p - log_q, 0.0)  # 0 log (0 / 0) is 0
    return (log_p.exp() * gaps).sum(dim=1).mean()


def split_softmax(
    queries: Float[Tensor, "b d"],
    positives: Float[Tensor, "b d"],
    hard_negatives: Float[Tensor, "m d"],
    owners: Int64[Tensor, " m"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    r"""Compute a separate softmax over hard negatives, OmniSONAR (2026), second part of Eq. (5).

    .. math:: -\frac1B \sum_i \log \frac{e^{\cos(x_i, y_i)/\tau}}
              {e^{\cos(x_i, y_i)/\tau} + \sum_{j: o_j = i} e^{\cos(x_i, h_j)/\tau}}

    *Symbols*: x ``queries``, y ``positives``, h ``hard_negatives``, o ``owners``.

    Differs from the paper: there is no margin.

    Args:
        queries: x.
        positives: row i belongs to query i.
        hard_negatives: h; the hard negatives of all queries, concatenated.
        owners: o; index of the query that each hard negative belongs to.
        temperature: tau > 0, in cosine units.

    Returns:
        Nats, a mean over B; a query without hard negatives counts with 0.

    Raises:
        ValueError: the temperature is not positive.
    """
    check_temperature(temperature)
    x = _unit(queries)
    y = _unit(positives)
    h = _unit(hard_negatives)
    owners = on_device(owners, h.device)
    positive = (x * y).sum(dim=1) / temperature
    negative = (x[owners] * h).sum(dim=1) / temperature
    # log(1 + sum_j e^(n_j - p)), shifted by the query's largest gap, so that nothing overflows
    gaps = negative - positive[owners]
    # The largest gap of each query, but at least 0, because the term 1 of the sum is e^0.
    zeros = torch.zeros_like(positive)
    largest = zeros.scatter_reduce(0, owners, gaps.detach(), "amax", include_self=True)
    total = torch.exp(-largest).index_add(0, owners, torch.exp(gaps - largest[owners]))
    return (total.log() + largest).mean()


def principal_components(
    covariance: Float[Tensor, "w w"], count: int
) -> tuple[Float[Tensor, "w k"], float]:
    """Compute the directions with the largest variance, and their share of the variance.

    Args:
        covariance: the covariance matrix of centered vectors, or a multiple of it.
        count: k, at most w.

    Returns:
        orthonormal columns, the strongest first, each with its largest entry positive so that they
        are the same on every machine; and the share of the variance, 0 to 1.

    Raises:
        ValueError: there are fewer directions than requested.
    """
    if count > len(covariance):
        raise ValueError(
            f"components: expected at most the vectors' width {len(covariance)}, found {count}"
        )
    values, vectors = torch.linalg.eigh(covariance.double())  # in ascending order
    chosen = vectors.flip(1)[:, :count]
    # An eigenvector's sign is arbitrary, and differs between machines.
    largest = chosen.gather(0, chosen.abs().argmax(dim=0, keepdim=True))
    values = values.clamp(min=0)  # rounding leaves zeros slightly below 0
    share = values[-count:].sum() / values.sum().clamp(min=1e-30)
    return chosen * largest.sign(), float(share)


def _unit(vectors: Tensor) -> Tensor:
    """Divide the vectors by their lengths."""
    return F.normalize(widen(vectors), dim=-1)
