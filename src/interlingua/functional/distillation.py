"""Losses that train an encoder to embed like another one."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interlingua.functional.contrastive import check_temperature, widen

OUT_OF_REACH = -1e30
"""A finite logit with the probability 0."""


def mean_squared_error(
    student: Float[Tensor, "b d"], teacher: Float[Tensor, "b d"]
) -> Float[Tensor, ""]:
    r"""Compute the squared distance of unnormalized embeddings (Reimers and Gurevych 2020).

    .. math:: \frac1{Bd} \sum_{i=1}^{B} \sum_{j=1}^{d} (s_{ij} - t_{ij})^2

    Differs from the paper: it writes the squared distance of the vectors; its code takes the mean
    over dimensions too, which divides the loss by d.

    Args:
        student: s.
        teacher: t; the caller decides whether a gradient flows into it.

    Returns:
        Squared units of an embedding's coordinate, in float32 or wider.
    """
    # The wider of the two, and at least float32: near embeddings differ in the last bits.
    wide = torch.promote_types(torch.promote_types(student.dtype, teacher.dtype), torch.float32)
    return (student.to(wide) - teacher.to(wide)).square().mean()


def similarity_divergence(
    student: Float[Tensor, "b n"],
    teacher: Float[Tensor, "b n"],
    *,
    temperature: float = 0.05,
    teacher_temperature: float = 0.02,
    excluded: Bool[Tensor, "b n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Compute the KL divergence of the student's ranking of candidates from the teacher's.

    .. math:: \frac1{|R|} \sum_{i \in R} \sum_j p_{ij} (\log p_{ij} - \log q_{ij}), \qquad
              p_i = \mathrm{softmax}_j(t_{ij} / T_t), \quad q_i = \mathrm{softmax}_j(s_{ij} / T_s)

    *Symbols*: s ``student``, t ``teacher``, both cosines of query i with candidate j; T_s
    ``temperature``, T_t ``teacher_temperature``; R the queries with two candidates or more, as the
    ranking of a single candidate is always the same. Listwise distillation of rankings, as in
    RocketQAv2 (Ren et al. 2021).

    Args:
        student: similarities.
        teacher: similarities; the caller decides whether a gradient flows into them.
        temperature: of the student, > 0.
        teacher_temperature: of the teacher, > 0; a lower one makes its ranking sharper.
        excluded: candidates that do not belong to a query.

    Returns:
        The divergence in nats, at least 0. It is 0 if no query has two candidates.
    """
    check_temperature(temperature)
    check_temperature(teacher_temperature)
    s = widen(student) / temperature
    t = widen(teacher) / teacher_temperature
    if excluded is None:
        excluded = torch.zeros_like(s, dtype=torch.bool)
    # Finite, so that 0 * (log p - log q) of such a candidate is 0 and not NaN.
    s = s.masked_fill(excluded, OUT_OF_REACH)
    t = t.masked_fill(excluded, OUT_OF_REACH)
    log_p = t.log_softmax(dim=1)
    log_q = s.log_softmax(dim=1)
    of_query = (log_p.exp() * (log_p - log_q)).sum(dim=1)
    ranked = ((~excluded).sum(dim=1) >= 2).to(of_query.dtype)
    return (of_query * ranked).sum() / ranked.sum().clamp(min=1)
