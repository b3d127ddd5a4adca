"""Contrast with keys of earlier batches, which a slowly moving copy of the encoder has made.

The queue makes the number of negatives independent of the size of a batch: a batch brings one key a
sentence, and the keys of the batches before it are the negatives.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.functional.contrastive import check_temperature, widen


def momentum_contrast(
    queries: Float[Tensor, "b d"],
    keys: Float[Tensor, "b d"],
    queue: Float[Tensor, "n d"],
    *,
    temperature: float = 0.25,
) -> Float[Tensor, ""]:
    r"""Cross-lingual contrast (XLCo) with a queue of negatives, InfoXLM (Chi et al. 2021).

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
    with torch.autocast(queries.device.type, enabled=False):
        q, k, negatives = (widen(x) for x in (queries, keys.detach(), queue.detach()))
        # Column 0 is the positive. The other keys of the batch are not used as negatives.
        positives = (q * k).sum(dim=1, keepdim=True)
        logits = torch.cat([positives, q @ negatives.T], dim=1) / temperature
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))
