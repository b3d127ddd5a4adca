"""Twenty steps of EMS, number for number: what a change of the code must not change by accident."""

from __future__ import annotations

import pytest
import torch

from interlingua.methods.ems import EMS, EMSConfig
from tests.methods.conftest import tiny_encoder, tiny_pairs

TOLERANCE = 1e-4
OPTIONS = {
    "ems": {},
    "ugt, shared embedding, AMS": {"generative": "ugt", "shared_embedding": True, "contrastive": "ams"},
}
CURVES = {
    "ems": """
        9.21357 9.51731 7.65971 7.38408 6.32217 7.28355 6.31958 6.33265 6.06742 6.85558 6.0392 5.9603
        5.92048 6.50385 5.81343 5.8437 5.67299 6.13309 5.49809 5.69696
    """,
    "ugt, shared embedding, AMS": """
        25.95147 26.05406 20.93136 21.59256 19.01672 17.86765 16.83784 17.61596 16.10406 17.45277 16.12119
        17.21868 15.32601 16.64307 15.03908 15.85556 15.03141 15.85598 14.67426 15.46687
    """,
}


def losses(options):
    """Loss at each of 20 steps: no dropout, float32, one thread, Adam(amsgrad) with coupled weight decay."""
    encoder = tiny_encoder(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    torch.manual_seed(1)
    objective = EMS(EMSConfig(tag_dropout=0.0, **options), encoder).train()
    optimizer = torch.optim.Adam(objective.parameters(), lr=3e-3, weight_decay=1e-5, amsgrad=True)
    for step in range(20):
        optimizer.zero_grad()
        loss = objective(tiny_pairs(8, step=step, seed=step % 4)).loss
        loss.backward()
        optimizer.step()
        yield loss.item()


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", CURVES)
def test_loss_curve(name):
    expected = [float(value) for value in CURVES[name].split()]
    assert list(losses(OPTIONS[name])) == pytest.approx(expected, rel=TOLERANCE)
