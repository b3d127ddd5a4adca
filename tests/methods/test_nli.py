"""Natural language inference against a loop over the pairs."""

import math
from itertools import pairwise

import pytest
import torch

from interlingua.errors import ConfigError
from interlingua.training.config import train_config_from
from interlingua.training.feeds.open_feeds import open_data
from tests.methods.harness import tiny_batch, tiny_objective


def rows_of(batch):
    """Return each sentence as a separate batch."""
    bounds = batch.cu_seqlens.tolist()
    for i, j in pairwise(bounds):
        yield type(batch).from_lists([batch.input_ids[i:j].tolist()], ["eng_Latn"])


@pytest.mark.parametrize("bias", [False, True])
def test_the_loss_is_that_of_a_loop(bias):
    objective, batch = tiny_objective("nli", {"bias": bias}), tiny_batch("nli")
    expected = []
    for a, b, label in zip(rows_of(batch.a), rows_of(batch.b), batch.labels.tolist(), strict=True):
        u, v = objective.encoder(a)[0], objective.encoder(b)[0]
        features = [
            *u.tolist(),
            *v.tolist(),
            *(abs(x - y) for x, y in zip(u.tolist(), v.tolist(), strict=True)),
        ]
        scores = [
            sum(w * f for w, f in zip(row, features, strict=True))
            for row in objective.classify.weight.tolist()
        ]
        if bias:
            scores = [
                score + more
                for score, more in zip(scores, objective.classify.bias.tolist(), strict=True)
            ]
        expected.append(math.log(sum(map(math.exp, scores))) - scores[int(label)])
    output = objective(batch)
    assert output.loss.item() == pytest.approx(sum(expected) / len(expected), rel=1e-5)
    assert set(output.terms) == {"nli"}


def test_without_weights_every_class_is_as_likely():
    objective = tiny_objective("nli")
    torch.nn.init.zeros_(objective.classify.weight)
    assert objective(tiny_batch("nli")).loss.item() == pytest.approx(math.log(3))


def test_classes_by_hand():
    """Weigh only the distance's first coordinate, for contradiction: u 1 and v -1 are 2 apart."""
    objective = tiny_objective("nli")
    weight = torch.zeros_like(objective.classify.weight)
    weight[0, 2 * objective.encoder.dim] = 1.0
    objective.classify.weight.data = weight
    u, v = torch.zeros(1, 16), torch.zeros(1, 16)
    u[0, 0], v[0, 0] = 1.0, -1.0
    assert objective.logits(u, v).tolist() == [[2.0, 0.0, 0.0]]
    assert objective.logits(v, u).tolist() == [[2.0, 0.0, 0.0]]


def test_gradients():
    objective = tiny_objective("nli").double()
    u, v = (torch.randn(3, 16, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(objective.logits, (u, v))


def test_scores_are_no_classes(tmp_path, prepared):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\t2.5\n")
    config = train_config_from(
        {
            "data": {"corpus": str(prepared), "labeled": {"paths": [str(path)], "kind": "sts"}},
            "encoder": {"preset": "ems-tiny"},
            "method": {"name": "nli"},
            "run": {"output": str(tmp_path / "run"), "max_steps": 1},
        }
    )
    with pytest.raises(ConfigError, match=r"kind is 'sts', .*nli .*'nli'"):
        open_data(config, ("labeled",))
