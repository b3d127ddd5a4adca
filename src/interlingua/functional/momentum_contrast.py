"""Contrast with keys of earlier batches, which a slowly moving copy of the encoder has made.

The queue makes the number of negatives independent of the size of a batch: a batch adds one key per
sentence, and the keys of earlier batches are the negatives.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.functional import contrastive
from interlingua.functional.contrastive import check_temperature, means_of_chunks, widen


def momentum_contrast(
    queries: Float[Tensor, "b d"],
    keys: Float[Tensor, "b d"],
    queue: Float[Tensor, "n d"],
    *,
    temperature: float = 0.25,
) -> Float[Tensor, ""]:
    r"""Compute cross-lingual contrast (XLCo) with a queue of negatives, InfoXLM (Chi et al. 2021).

    .. math:: -\frac1B \sum_i \log \frac{e^{q_i \cdot k_i / \tau}}
              {e^{q_i \cdot k_i / \tau} + \sum_{n \in \mathcal N} e^{q_i \cdot n / \tau}}

    *Symbols*: q ``queries``, k ``keys``: row i translates query i; N ``queue``; tau
    ``temperature``, in units of the inner product. No gradient flows into keys and queue.

    Differs from the paper: it names no temperature; 0.25 is the default of the released code, which
    does not normalize the vectors either.

    Returns:
        Nats, a mean over B; 0 while the queue is empty.

    Raises:
        ValueError: the temperature is not positive.
    """
    check_temperature(temperature)
    q, k, negatives = (widen(x) for x in (queries, keys.detach(), queue.detach()))
    if len(q) * len(negatives) > contrastive.WHOLE_LOGITS:

        def losses(rows: slice) -> dict[str, Tensor]:
            return {"loss": _contrast(q[rows], k[rows], negatives, temperature)}

        return means_of_chunks(losses, len(q), len(negatives))["loss"]
    return _contrast(q, k, negatives, temperature)


def _contrast(
    q: Float[Tensor, "b d"],
    k: Float[Tensor, "b d"],
    negatives: Float[Tensor, "n d"],
    temperature: float,
) -> Float[Tensor, ""]:
    with torch.autocast(q.device.type, enabled=False):
        # Column 0 is the positive. The other keys of the batch are not used as negatives.
        positives = (q * k).sum(dim=1, keepdim=True)
        logits = torch.cat([positives, q @ negatives.T], dim=1) / temperature
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))
