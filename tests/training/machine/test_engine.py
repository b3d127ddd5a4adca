import json
import os
from pathlib import Path

import pytest
import torch
from torch import nn

from interlingua.batches.sentences import join
from interlingua.errors import ConfigError
from interlingua.kernels import calls
from interlingua.runtime.fusion import switch
from interlingua.training.config import RunConfig
from interlingua.training.machine.engine import Engine, _shard, same_bytes_each_time
from interlingua.training.machine.memory import TORCH_VARIABLES
from tests.methods.harness import tiny_batch, tiny_objective
from tests.training.runs import run_python


def make(**options):
    return Engine(
        RunConfig(
            output=Path("unused"), max_steps=1, **{"device": "cpu", "precision": "fp32", **options}
        )
    )


@pytest.fixture
def one_gpu(monkeypatch):
    """A machine with a GPU, according to torch's Python functions. Nothing can compute on it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for name in TORCH_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_more_processes_than_gpus_are_a_config_error(one_gpu):
    with pytest.raises(ConfigError, match="lower devices"):
        make(device="cuda", devices=2)


class CpuMesh:
    """Two processes, as far as the sharding looks at them before it shards."""

    device_type = "cpu"

    def __getitem__(self, name):
        return self

    def get_group(self):
        return None

    def size(self):
        return 2


def test_fsdp_is_refused_where_torch_adds_gradients_on_a_cpu(monkeypatch):
    def added(output, given, op, group):
        output.copy_(2 * given[:1])

    monkeypatch.setattr(torch.distributed, "reduce_scatter_tensor", added)
    with pytest.raises(ConfigError, match="use a newer torch"):
        _shard(nn.Linear(1, 1), CpuMesh())


def test_torchs_allocator_is_configured_before_the_gpu_is_used(one_gpu, monkeypatch):
    class FirstUseError(Exception):
        pass

    def use(**_):
        raise FirstUseError(os.environ["PYTORCH_CUDA_ALLOC_CONF"])

    # By a variable of the test's own, which its end takes away.
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", use)
    with pytest.raises(FirstUseError, match="expandable_segments:True"):
        make(device="cuda", precision="auto")


def test_one_process():
    engine = make()
    tensor = torch.randn(3, 2, requires_grad=True)
    assert (engine.rank, engine.world_size, engine.is_main, engine.device) == (
        0,
        1,
        True,
        torch.device("cpu"),
    )
    assert engine.all_gather_grad(tensor) is tensor
    assert engine.sparse_gradients
    assert (engine.any(True), engine.any(False), engine.any_at(True, 3), engine.share("x")) == (
        True,
        False,
        True,
        "x",
    )


def test_a_run_switches_compilation_on_and_the_next_one_off(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    for wanted in (True, False):
        make(compile=wanted)
        assert switch.is_on is wanted


def test_random_numbers_by_name():
    engine = make()
    draws = []
    for purpose in (("step", 1), ("step", 2), ("step", 1)):
        engine.seed(5, *purpose)
        draws.append(torch.rand(4))
    assert torch.equal(draws[0], draws[2])
    assert not torch.equal(draws[0], draws[1])


def test_clipping_returns_the_norm_before():
    engine, layer = make(), nn.Linear(2, 1, bias=False)
    layer.weight.grad = torch.tensor([[3.0, 4.0]])
    assert engine.clip(layer, None) == 5
    torch.testing.assert_close(layer.weight.grad, torch.tensor([[3.0, 4.0]]))
    assert engine.clip(layer, 1.0) == 5
    torch.testing.assert_close(layer.weight.grad, torch.tensor([[0.6, 0.8]]), rtol=1e-5, atol=0)


def test_clipping_of_a_sparse_gradient_is_that_of_the_dense_one():
    engine, ids = make(), torch.tensor([3, 1, 3])
    tables = [
        nn.Embedding.from_pretrained(torch.ones(5, 2), freeze=False, sparse=sparse)
        for sparse in (True, False)
    ]
    norms = []
    for table in tables:
        (table(ids) * torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
        norms.append(engine.clip(table, 2.0))
    assert norms[0] == norms[1] == pytest.approx((6**2 + 8**2 + 3**2 + 4**2) ** 0.5)
    torch.testing.assert_close(tables[0].weight.grad.to_dense(), tables[1].weight.grad)
    assert tables[1].weight.grad.norm() == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("sparse", [True, False])
def test_clipping_of_what_is_not_finite_does_as_torch(bad, sparse):
    nets = [
        nn.Sequential(nn.Embedding(5, 2, sparse=sparse), nn.Linear(2, 1)),
        nn.Sequential(nn.Embedding(5, 2), nn.Linear(2, 1)),
    ]
    nets[1].load_state_dict(nets[0].state_dict())
    for net in nets:
        (net(torch.tensor([3, 1, 3])) * torch.tensor([[1.0], [bad], [2.0]])).sum().backward()
    norm, wanted = make().clip(nets[0], 1.0), nn.utils.clip_grad_norm_(nets[1].parameters(), 1.0)
    torch.testing.assert_close(norm, wanted, equal_nan=True)
    assert not torch.isfinite(wanted)
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        rows = (
            [1, 3] if one.grad.is_sparse else slice(None)
        )  # torch's rows that were not looked up are 0 times NaN
        torch.testing.assert_close(one.grad.to_dense()[rows], other.grad[rows], equal_nan=True)


def test_bf16_computes_in_bfloat16_and_keeps_float32_weights():
    engine = make(precision="bf16")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            self.seen = self.layer(x).dtype
            return self.layer(x).sum()

    net = Net()
    model = engine.setup(net)
    engine.backward(model(torch.randn(2, 4)))
    assert net.seen == torch.bfloat16
    assert (
        {p.dtype for p in net.parameters()}
        == {p.grad.dtype for p in net.parameters()}
        == {torch.float32}
    )
    with engine.autocast():
        assert net.layer(torch.randn(2, 4)).dtype == torch.bfloat16


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_labels_are_not_rounded_to_16_bits(precision):
    engine = make(precision=precision)
    objective = tiny_objective("sts")
    labels = torch.tensor([0.123456789, 0.987654321, 1 / 3, 2 / 3, 0.1, 0.7])
    batch = tiny_batch("sts")._replace(labels=labels)
    model = engine.setup(objective)
    with engine.autocast():
        u, v = objective.encoder(join(batch.a, batch.b)).chunk(2)
    expected = (nn.functional.cosine_similarity(u.float(), v.float()) - labels).square().mean()
    torch.testing.assert_close(model(batch).loss, expected, rtol=1e-6, atol=0)


def test_what_the_machine_decides_is_written_out(tiny_config):
    threads = torch.get_num_threads()
    config = tiny_config(device="auto", precision="auto", threads=None)
    whole = Engine(config.run).resolve_hardware(config)
    assert whole.data.valid_batch_size == config.run.global_batch_size
    settled = whole.run
    assert settled.device == ("cuda" if torch.cuda.is_available() else "cpu")
    assert settled.precision in ("fp32", "bf16", "fp16")
    assert settled.executor in ("kernel", "torch")
    assert settled.threads == threads


def test_the_executor_of_a_run_is_its_own(monkeypatch):
    monkeypatch.setattr(calls, "library", lambda name: object())
    monkeypatch.setattr(calls, "variant", lambda name: "avx2")
    used = {}
    for executor in ("kernel", "torch", "auto"):
        with make(executor=executor):
            used[executor] = calls.can_use_training_kernel(torch.ones(1))
    assert used == {"kernel": True, "torch": False, "auto": True}  # the variable is "first"
    with pytest.raises(KeyError), make(executor="torch"):
        raise KeyError
    assert calls.can_use_training_kernel(torch.ones(1))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu_is_the_users_error():
    with pytest.raises(ConfigError, match=r"--set run\.device=cpu"):
        make(device="cuda")


WORKER = """
import json, sys, torch
from pathlib import Path
from interlingua.training.config import RunConfig
from interlingua.training.machine.engine import Engine, same_bytes_each_time

options = {"device": "cpu", "precision": "fp32", "threads": 1, "devices": 2}
run = RunConfig(output=Path("unused"), max_steps=1, **options)
with Engine(run) as engine:
    x = torch.arange(6.0).reshape(3, 2) + 10 * engine.rank
    x.requires_grad_()
    gathered = engine.all_gather_grad(x)
    (gathered * torch.arange(6.0)[:, None] * (engine.rank + 1)).sum().backward()
    engine.seed(1, "step", 1)
    found = {
        "rank": engine.rank, "world": engine.world_size, "sparse": engine.sparse_gradients,
        "main": engine.is_main, "gathered": gathered.tolist(),
        "grad": x.grad.tolist(),
        "ints": engine.all_gather_grad(torch.tensor([engine.rank])).tolist(),
        "mean": engine.mean(torch.tensor(float(engine.rank))).item(),
        "shared": engine.share(f"from {engine.rank}"),
        "any": [engine.any(engine.rank == 1), engine.any(False)],
        "any_at": [engine.any_at(engine.rank == 1, 7), engine.any_at(engine.rank == 1, 8)],
        "draw": torch.rand(1).item(),
    }
    Path(sys.argv[1], f"{engine.rank}.json").write_text(json.dumps(found))
assert not torch.distributed.is_initialized()
"""

FAILING = """
import sys
from pathlib import Path
from interlingua.training.config import RunConfig
from interlingua.training.machine.engine import Engine
from tests.methods.harness import tiny_objective

options = {"device": "cpu", "precision": "fp32", "threads": 1, "devices": 2}
run = RunConfig(output=Path("unused"), max_steps=1, **options)
try:
    with Engine(run) as engine:
        model = engine.setup(tiny_objective("calibrated"))
        if sys.argv[1] in ("both", str(engine.rank)):
            raise ValueError("a mistake")
        engine.barrier()
except ValueError as error:
    kept = error  # and with it all that its frames hold
except RuntimeError:
    pass  # the other process has gone
threads = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
assert not [name for name in threads if "gloo" in name], threads
sys.exit(2)
"""


def test_two_processes(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    run_python(script, tmp_path)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert (first["rank"], second["rank"], first["world"]) == (0, 1, 2)
    assert (first["main"], second["main"]) == (True, False)
    assert not first["sparse"]
    rows = [[0, 1], [2, 3], [4, 5]]
    assert first["gathered"] == second["gathered"] == rows + [[a + 10, b + 10] for a, b in rows]
    # each row gets what both ranks' losses ask of it: (1 + 2) times its weight
    assert first["grad"] == [[0, 0], [3, 3], [6, 6]]
    assert second["grad"] == [[9, 9], [12, 12], [15, 15]]
    assert first["ints"] == [0, 1]
    assert first["mean"] == second["mean"] == 0.5
    assert first["shared"] == second["shared"] == "from 0"
    assert first["any"] == second["any"] == [True, False]
    assert first["any_at"] == second["any_at"] == [False, True]
    assert first["draw"] != second["draw"]


def test_deterministic_block_switches_and_restores(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    with same_bytes_each_time():
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"  # the user's own
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_deterministic_run_on_the_cpu_is_as_any_other(tmp_path):
    with Engine(RunConfig(output=tmp_path, max_steps=1, device="cpu", deterministic=True)):
        assert not torch.are_deterministic_algorithms_enabled()
