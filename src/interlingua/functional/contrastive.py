"""Contrastive objectives: each sentence embedding has to find that of its translation in a batch.

Nearly all of them are one softmax cross-entropy: the similarities of an anchor with all candidates,
divided by a temperature, are logits, and the right candidate is the class. They differ in the
candidates (the other side only, or both sides), in the direction that is ranked, and in the margin
that is subtracted from the positive. Up to ``WHOLE_LOGITS`` elements the matrix of logits is kept
for the backward pass, as torch does by itself. Larger ones are computed in blocks of rows, once in
the forward and once in the backward pass: by ``_ChunkedSoftmax``, which can rank both directions,
or by ``means_of_chunks`` where a loss is a mean over rows. The language contrast is the exception:
it compares two similarities by a sigmoid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from interlingua.runtime.devices import on_device

CHUNK_COSINES = 1 << 20
"""Number of cosines that the language contrast holds in memory at a time."""
WHOLE_LOGITS = 1 << 28
"""Maximum number of logits, 16,384 x 16,384, that are kept for the backward pass. Larger matrices
are computed twice, in blocks of rows."""
CHUNK_LOGITS = 1 << 26
"""Maximum number of logits in such a block."""


def cosine_similarities(x: Float[Tensor, "b d"], y: Float[Tensor, "n d"]) -> Float[Tensor, "b n"]:
    """Compute the cosine of every x with every y, 0 if either is the zero vector.

    The result is in float32 or wider, also under autocast.
    """
    return inner_products(F.normalize(widen(x), dim=-1), F.normalize(widen(y), dim=-1))


def inner_products(x: Float[Tensor, "b d"], y: Float[Tensor, "n d"]) -> Float[Tensor, "b n"]:
    """Compute the inner product of every x with every y.

    The result is in float32 or wider, also under autocast.
    """
    # Without autocast: a temperature of 0.1 would multiply the rounding error by ten.
    with torch.autocast(x.device.type, enabled=False):
        return widen(x) @ widen(y).T


def bidirectional_contrastive(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "b d"],
    *,
    temperature: float = 0.1,
    excluded: Bool[Tensor, "b b"] | None = None,
) -> Float[Tensor, ""]:
    r"""Compute sentence contrast in both directions, EMS (Mao et al. 2023), Eq. (8) as a mean.

    .. math:: -\frac1B \sum_j \Bigl( \log\frac{e^{s_{jj}/T}}{\sum_k e^{s_{jk}/T}}
              + \log\frac{e^{s_{jj}/T}}{\sum_k e^{s_{kj}/T}} \Bigr), \qquad s_{jk} = \cos(x_j, y_k)

    *Symbols*: h(S_l) ``x``, h(S_l') ``y``, T ``temperature``. Negatives come from the other side
    only.

    Args:
        x: embeddings of one side.
        y: embeddings of the other; row i translates row i of ``x``.
        temperature: T > 0, in cosine units.
        excluded: pairs that are not to count as negatives (other translations of the same
            sentence); the diagonal is never excluded.

    Returns:
        Nats: the sum of both directions, each a mean over B.

    Raises:
        ValueError: the temperature is not positive.
    """
    # Without margin, LaBSE's loss is Eq. (8).
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
    r"""Compute the bidirectional additive-margin softmax, LaBSE (Feng et al. 2022), Eq. (1)-(2).

    .. math:: -\frac1B \sum_i \Bigl( \log\frac{e^{(\phi_{ii}-m)/\tau}}{e^{(\phi_{ii}-m)/\tau}
              + \sum_{k\ne i} e^{\phi_{ik}/\tau}} + \text{the same with } \phi_{ki} \Bigr)

    *Symbols*: phi_ij = cos(x_i, y_j); m ``margin``, taken from the positives only; tau
    ``temperature``.

    Differs from the paper: LaBSE names a margin and no temperature; EMS uses m = 0.3 and tau = 0.1
    but does not specify the order. The margin is subtracted before the division unless
    ``margin_after_temperature``.

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
    check_temperature(temperature)
    # In logits: (phi - m) / tau = phi / tau - m / tau.
    reduction = margin if margin_after_temperature else margin / temperature
    if len(x) * len(y) > WHOLE_LOGITS:
        # The blocks of logits are products of these two; one side includes the temperature.
        anchors = _scaled(F.normalize(widen(x), dim=-1), temperature)
        candidates = F.normalize(widen(y), dim=-1)
        return _chunked_softmax(
            anchors, candidates, excluded=excluded, reduction=reduction, both=True
        )
    logits = _scaled(cosine_similarities(x, y), temperature)  # phi_ij / tau
    logits = logits - reduction * torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    if excluded is not None:
        logits = logits.masked_fill(_without_diagonal(excluded, logits.device), -torch.inf)
    positives = torch.arange(len(logits), device=logits.device)
    # Rows are x among all y, columns are y among all x.
    return F.cross_entropy(logits, positives) + F.cross_entropy(logits.T, positives)


def infonce(
    queries: Float[Tensor, "b d"],
    passages: Float[Tensor, "b d"],
    *,
    hard_negatives: Float[Tensor, "n d"] | None = None,
    temperature: float = 1.0,
    cosine: bool = True,
    excluded: Bool[Tensor, "b b+n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Compute InfoNCE from queries to passages, multilingual retrieval (Hu et al. 2022), Eq. (1).

    .. math:: -\frac1B \sum_i \log
              \frac{e^{s(q_i, p_i)/T}}{\sum_k e^{s(q_i, p_k)/T} + \sum_n e^{s(q_i, n_n)/T}}

    Args:
        queries: q.
        passages: p; row i answers query i, the other rows are its negatives.
        hard_negatives: further negatives, shared by all queries.
        temperature: T > 0.
        cosine: True: s is the cosine; False: s is the inner product, as in DPR.
        excluded: pairs of query and candidate, passages before hard negatives, that are not to
            count as negatives; the diagonal is never excluded.

    Returns:
        Nats, a mean over B.

    Raises:
        ValueError: the temperature is not positive.
    """
    # Passages first, so that the answer of query i is candidate i.
    candidates = passages
    if hard_negatives is not None:
        candidates = torch.cat([passages, hard_negatives])
    if len(queries) * len(candidates) > WHOLE_LOGITS:
        q, c = widen(queries), widen(candidates)
        if cosine:
            q, c = F.normalize(q, dim=-1), F.normalize(c, dim=-1)
        return _chunked_softmax(_scaled(q, temperature), c, excluded=excluded)
    compare = cosine_similarities if cosine else inner_products
    logits = _scaled(compare(queries, candidates), temperature)  # s(q_i, .) / T
    if excluded is not None:
        logits = logits.masked_fill(_without_diagonal(excluded, logits.device), -torch.inf)
    return F.cross_entropy(logits, torch.arange(len(queries), device=queries.device))


def semantic_contrastive(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "b d"],
    *,
    temperature: float = 0.1,
    excluded: Bool[Tensor, "b b"] | None = None,
) -> Float[Tensor, ""]:
    r"""Compute NT-Xent over 2B sentences, multilingual retrieval (Hu et al. 2022), Eq. (2).

    .. math:: -\frac1{2B} \sum_{i=1}^{2B} \log
              \frac{e^{\cos(z_i, z_{i'})/\tau}}{\sum_{k \ne i} e^{\cos(z_i, z_k)/\tau}},
              \qquad z = [x; y]

    *Symbols*: i' is the translation of i; tau ``temperature``. Unlike in EMS, sentences of the
    same side are negatives too.

    Args:
        x: embeddings of one side.
        y: embeddings of the other; row i translates row i of ``x``.
        temperature: tau > 0, in cosine units.
        excluded: True at [i, j] if neither sentence of pair j counts as a negative of the
            sentences of pair i.

    Returns:
        Nats, a mean over the 2B anchors.

    Raises:
        ValueError: the temperature is not positive.
    """
    z = torch.cat([x, y])
    if len(z) ** 2 > WHOLE_LOGITS:
        check_temperature(temperature)
        units = F.normalize(widen(z), dim=-1)
        losses = partial(_semantic_rows, units, units / temperature, excluded)
        return means_of_chunks(losses, len(z), len(z))["loss"]
    # A sentence is not its own candidate.
    logits = _scaled(cosine_similarities(z, z), temperature).fill_diagonal_(-torch.inf)
    if excluded is not None:
        # Two pairs meet in four places: each sentence of the one with each sentence of the other.
        repeated = _without_diagonal(excluded, logits.device).repeat(2, 2)
        logits = logits.masked_fill(repeated, -torch.inf)
    # Row i of the first half belongs to column i + B, and the other way round.
    return F.cross_entropy(logits, torch.arange(len(z), device=z.device).roll(len(x)))


def _semantic_rows(
    z: Float[Tensor, "n d"],
    scaled: Float[Tensor, "n d"],
    excluded: Bool[Tensor, "b b"] | None,
    rows: slice,
) -> dict[str, Float[Tensor, ""]]:
    """Compute the mean ``loss`` of ``semantic_contrastive`` over some of the 2B anchors.

    Args:
        z: both sides, of length 1.
        scaled: z, divided by the temperature.
        excluded: as in ``semantic_contrastive``.
        rows: the anchors.
    """
    pairs = len(z) // 2
    anchors = torch.arange(rows.start, rows.stop, device=z.device)
    logits = inner_products(scaled[rows], z)
    if excluded is not None:
        hidden = on_device(excluded, z.device)[anchors % pairs]
        # A pair never excludes its own two sentences.
        hidden = hidden.scatter(1, (anchors % pairs)[:, None], False)
        logits = logits.masked_fill(hidden.repeat(1, 2), -torch.inf)
    logits.diagonal(rows.start).fill_(-torch.inf)  # the anchor itself
    return {"loss": F.cross_entropy(logits, (anchors + pairs) % len(z))}


def language_contrastive(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "b d"],
    others: Float[Tensor, "m d"] | None = None,
    *,
    reduction: Literal["mean", "literal", "sum"] = "mean",
) -> Float[Tensor, ""]:
    r"""Compute the language contrast of multilingual retrieval (Hu et al. 2022), Eq. (3).

    The loss is smallest if every other sentence is equally near to both sentences of a pair.

    .. math:: -\frac1{N(N-2)} \sum_{(i,j) \in P} \sum_{k \in (P \cup Q) \setminus \{i,j\}} \Bigl(
              \log\frac{e^{s_{ik}}}{e^{s_{ik}} + e^{s_{jk}}} + \log\frac{e^{s_{jk}}}{e^{s_{ik}} +
              e^{s_{jk}}} \Bigr), \qquad s_{ik} = \cos(z_i, z_k)

    *Symbols*: P the pairs of ``x`` and ``y``; Q ``others``, sentences without translation; N the
    number of sentences.

    Differs from the paper: its factor, with N as the number of sentences, gives the mean over the
    logarithms only if Q is empty; otherwise the loss becomes smaller as Q grows. The default is
    always the mean, whose gradient does not depend on the size of the batch; ``literal`` is the
    printed factor. The normalizer that the authors used is not known. With the printed weight of
    0.001 and 48 pairs, the gradient of the mean is millions of times smaller than that of the
    semantic loss, and that of the ``sum`` is 390 times smaller.

    Args:
        x: embeddings of one side.
        y: embeddings of the other; row i translates row i of ``x``.
        others: embeddings of further sentences, of any language.
        reduction: "mean" of the 2 B (N - 2) logarithms, "sum" of them, or "literal": the sum
            divided by N (N - 2).

    Returns:
        Nats. The minimum is log 2 with "mean" and 2 B (N - 2) log 2 with "sum"; the loss reaches it
        if no cosine distinguishes a sentence from its translation.

    Raises:
        ValueError: there is only one pair and no other sentence to compare it with.
    """
    rows = [x, y]
    if others is not None:
        rows.append(others)
    z = torch.cat(rows)  # P, then Q
    pairs = len(x)
    sentences = len(z)
    if sentences <= 2:
        raise ValueError(
            "the language contrast requires a pair and at least one other sentence; use a larger"
            " batch"
        )
    with torch.autocast(z.device.type, enabled=False):
        units = F.normalize(widen(z), dim=-1)
        # s_ik - s_jk = (z_i - z_j) . z_k: one product for both similarities
        differences = units[:pairs] - units[pairs : 2 * pairs]
        total: Tensor = _LanguageContrast.apply(differences, units)  # type: ignore[no-untyped-call]
    # Two logarithms in the bracket, for each of B pairs and each sentence outside the pair.
    divisors = {
        "mean": 2 * pairs * (sentences - 2),
        "literal": sentences * (sentences - 2),
        "sum": 1,
    }
    return total / divisors[reduction]


class _LanguageContrast(torch.autograd.Function):
    """Sum of f(D), D = u_n . z_k, over pairs n and the sentences k that are not in pair n.

    u_n is row n of ``differences``, z_k is row k of ``units``.

    f(D) = -log sigmoid(D) - log sigmoid(-D) is the bracket of Eq. (3). Its least value is log 4.
    f'(D) = tanh(D / 2), so forward also computes the gradients, for some pairs at a time. No
    (pairs, sentences) matrix is kept.
    """

    @staticmethod
    def forward(
        ctx: Any, differences: Float[Tensor, "b d"], units: Float[Tensor, "n d"]
    ) -> Float[Tensor, ""]:
        pairs = len(differences)
        total = units.new_zeros(())
        grad_differences = torch.empty_like(differences)
        grad_units = torch.zeros_like(units)
        size = max(1, CHUNK_COSINES // len(units))
        for start in range(0, pairs, size):
            rows = slice(start, start + size)
            gaps = differences[rows] @ units.T
            # The sentences of pair n are the rows n and n + B of z.
            own = torch.zeros_like(gaps, dtype=torch.bool)
            for side in (0, pairs):
                own.diagonal(start + side).fill_(True)
            # With a gap of 0 the slope is tanh(0) = 0; the value is left out below.
            gaps.masked_fill_(own, 0)
            # f(D) = |D| + 2 log(1 + e^-|D|): symmetric, and e^-|D| can't overflow.
            size_of_gap = gaps.abs()
            values = size_of_gap + 2 * F.softplus(-size_of_gap)
            total += values.masked_fill_(own, 0).sum()
            slopes = torch.tanh(gaps / 2)  # f'(D)
            grad_differences[rows] = slopes @ units
            grad_units += slopes.T @ differences[rows]
        ctx.save_for_backward(grad_differences, grad_units)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        grad_differences, grad_units = ctx.saved_tensors
        return gradients[0] * grad_differences, gradients[0] * grad_units


def _chunked_softmax(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "n d"],
    *,
    excluded: Bool[Tensor, "b n"] | None = None,
    reduction: float = 0.0,
    both: bool = False,
) -> Float[Tensor, ""]:
    """Compute the mean cross-entropy of each x with its own y, under the softmax of x y'.

    Args:
        x: anchors, in float32 or wider, divided by the temperature.
        y: candidates; row i belongs to row i of ``x``.
        excluded: as in ``bidirectional_contrastive``.
        reduction: amount subtracted from the logits of the positives.
        both: add the softmax over each column, in which each y has to find its own x.
    """
    with torch.autocast(x.device.type, enabled=False):
        loss: Tensor = _ChunkedSoftmax.apply(x, y, excluded, reduction, both)  # type: ignore[no-untyped-call]
    return loss


class _ChunkedSoftmax(torch.autograd.Function):
    """Softmax cross-entropy over blocks of rows of the logits, which are computed twice.

    The forward pass keeps the logarithm of each row's sum of exponentials, and of each column's.
    The backward pass needs nothing else: the slope of the loss along a logit is its share of the
    row's sum plus its share of the column's sum. For a positive, each of the two is 1 less.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "b d"],
        y: Float[Tensor, "n d"],
        excluded: Tensor | None,
        reduction: float,
        both: bool,
    ) -> Float[Tensor, ""]:
        row_sums = torch.empty_like(x[:, 0])  # logarithms, as in column_sums
        column_sums = torch.full_like(y[:, 0], -torch.inf)  # log 0, where the sums start
        own = (x * y[: len(x)]).sum(1) - reduction
        for rows in _row_chunks(len(x), len(y)):
            logits = _some_logits(x, y, excluded, reduction, rows)
            row_sums[rows] = logits.logsumexp(1)
            if both:
                column_sums = torch.logaddexp(column_sums, logits.logsumexp(0))
        ctx.save_for_backward(x, y, excluded, row_sums, column_sums)
        ctx.reduction = reduction
        ctx.both = both
        loss = (row_sums - own).mean()
        if both:
            loss = loss + (column_sums - own).mean()
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, y, excluded, row_sums, column_sums = ctx.saved_tensors
        d_x = torch.empty_like(x)
        d_y = torch.zeros_like(y)
        with torch.autocast(x.device.type, enabled=False):
            for rows in _row_chunks(len(x), len(y)):
                logits = _some_logits(x, y, excluded, ctx.reduction, rows)
                slopes = (logits - row_sums[rows, None]).exp()  # softmax of the row
                if ctx.both:
                    slopes += (logits - column_sums).exp()  # softmax of the column
                slopes.diagonal(rows.start).sub_(1 + ctx.both)  # once for each softmax
                d_x[rows] = slopes @ y
                d_y += slopes.T @ x[rows]
        factor = upstream / len(x)  # of the means
        return d_x * factor, d_y * factor, None, None, None


def means_of_chunks(
    losses: Callable[[slice], dict[str, Float[Tensor, ""]]], rows: int, columns: int
) -> dict[str, Float[Tensor, ""]]:
    """Compute the mean of each loss over all rows, a block of rows at a time.

    No intermediate value of a row is kept: the backward pass computes the row again.

    Args:
        losses: returns the losses by name, each a mean over the rows of the slice.
        rows: number of rows.
        columns: number of logits per row.
    """
    sums: dict[str, Tensor] = {}
    for some in _row_chunks(rows, columns):
        means = checkpoint(losses, some, use_reentrant=False, preserve_rng_state=False)
        share = (some.stop - some.start) / rows
        for name, mean in means.items():
            sums[name] = sums.get(name, 0) + share * mean
    return sums


def _row_chunks(rows: int, columns: int) -> list[slice]:
    """Return slices of rows with at most ``CHUNK_LOGITS`` logits each."""
    size = max(1, CHUNK_LOGITS // columns)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def _some_logits(
    x: Float[Tensor, "b d"],
    y: Float[Tensor, "n d"],
    excluded: Bool[Tensor, "b n"] | None,
    reduction: float,
    rows: slice,
) -> Float[Tensor, "r n"]:
    """Compute some rows of x y', reduced at the positives and -inf where excluded."""
    logits = x[rows] @ y.T
    # Row r of the block is row ``rows.start`` + r of the whole matrix, and its positive is in
    # the column of that number.
    logits.diagonal(rows.start).sub_(reduction)
    if excluded is not None:
        # a copy, because the next line must not change the caller's mask
        hidden = on_device(excluded[rows], logits.device).clone()
        hidden.diagonal(rows.start).fill_(False)
        logits.masked_fill_(hidden, -torch.inf)
    return logits


def _without_diagonal(excluded: Bool[Tensor, "b n"], device: torch.device) -> Bool[Tensor, "b n"]:
    """Return the mask without the positives.

    The mask may exclude a positive, since its two sentences have the same meaning, but the positive
    must stay a candidate.
    """
    excluded = on_device(excluded, device)
    return excluded & ~torch.eye(*excluded.shape, dtype=torch.bool, device=excluded.device)


def _scaled(similarity: Float[Tensor, "b n"], temperature: float) -> Float[Tensor, "b n"]:
    check_temperature(temperature)
    return similarity / temperature


def check_temperature(temperature: float) -> None:
    """Raise an error if a temperature is not positive."""
    if temperature <= 0:
        raise ValueError(f"temperature: expected a number above 0, found {temperature}")


def widen(tensor: Tensor) -> Tensor:
    """Return the tensor in float32, or unchanged if it is in float64; losses use these types."""
    if tensor.dtype == torch.float64:
        return tensor
    return tensor.float()
