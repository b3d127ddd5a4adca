"""Initialization of a student's new linear layer as the least-squares map to its teachers' vectors.

The targets are joined principal components of several teachers, and no encoder has these axes at
the start: its vectors differ from the targets at least by a rotation, which the transformer would
have to learn layer by layer. This module computes that rotation before the first step, from the
sentences of the bank.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.sentences import sentence_keys
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.methods.teachers.teacher_bank import TeacherBank

_SENTENCES = 8192
"""Number of the bank's sentences that the map is estimated on."""
TOGETHER = 64
"""Sentences that are embedded at once."""
RIDGE = 1e-3
"""Penalty on the squares of the map's coefficients, as a share of the mean variance of a
dimension."""


@torch.no_grad()
def fit_dense(
    encoder: Encoder, sentences: Sequence[list[int]], language: str, bank: TeacherBank
) -> None:
    """Fit the encoder's last linear layer, which is still the identity.

    Args:
        encoder: the student.
        sentences: token ids, in the order of the sentences' keys, which is random.
        language: of the sentences.
        bank: holds the teachers' vectors of these sentences.
    """
    training = encoder.training
    encoder.eval()
    device = next(encoder.parameters()).device
    # Put sentences of about the same length into one batch.
    chosen = sorted(sentences[:_SENTENCES], key=len)
    students = []
    targets = []
    for start in range(0, len(chosen), TOGETHER):
        ids = chosen[start : start + TOGETHER]
        batch = TokenBatch.from_lists(ids, [language] * len(ids)).to(device)
        students.append(encoder(batch).double())
        targets.append(F.normalize(bank.vectors(sentence_keys(batch)).double(), dim=1))
    weight, bias = least_squares(torch.cat(students), torch.cat(targets))
    layer = encoder.post_pooling.dense_layers[-1].linear
    layer.weight.copy_(weight)
    layer.bias.copy_(bias)
    encoder.train(training)


def least_squares(
    x: Float[Tensor, "n d"], y: Float[Tensor, "n e"], *, ridge: float = RIDGE
) -> tuple[Float[Tensor, "e d"], Float[Tensor, " e"]]:
    r"""Compute the affine map from x to y of least squared error, by ridge regression.

    .. math:: W = Y_c^\top X_c (X_c^\top X_c + \lambda \bar v n I)^{-1},
              \qquad b = \bar y - W \bar x

    *Symbols*: X_c and Y_c are x and y without their means, lambda ``ridge``, v the mean variance of
    x's dimensions. The penalty keeps the map small along directions in which x hardly varies.

    Args:
        x: one row for each sample.
        y: the target of each.
        ridge: lambda >= 0.

    Returns:
        W and b.
    """
    x_mean = x.mean(dim=0)
    y_mean = y.mean(dim=0)
    x_centered = x - x_mean
    y_centered = y - y_mean
    products = x_centered.T @ x_centered
    penalty = ridge * products.diagonal().mean()  # lambda v n
    regular = products + penalty * torch.eye(len(products), dtype=x.dtype, device=x.device)
    weight = torch.linalg.solve(regular, x_centered.T @ y_centered).T
    return weight, y_mean - weight @ x_mean
