from __future__ import annotations

import json

import pytest

from tests.training.runs import run_python

COMPUTED = {
    "bf16 fp32": "bf16 kernel torch.bfloat16 torch.float32 torch.float32",
    "fp32 bf16": "fp32 torch torch.float32 torch.float32 torch.float64",
}
"""By the precisions that two processes find fastest, and the executor of the first."""
OF_DDP = {"broadcast_buffers": False, "gradient_as_bucket_view": True}
"""A method's queue of keys is not sent in every step, and no gradient is held twice."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The output of both processes, by strategy and precisions."""
    results = {}
    for strategy in ("ddp", "fsdp"):
        for fastest in COMPUTED:
            folder = tmp_path_factory.mktemp(strategy)
            worker = ("-m", "tests.distributed.precision_worker")
            run_python(*worker, folder, strategy, *fastest.split())
            results[strategy, fastest] = [
                json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)
            ]
    return results


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize(("fastest", "computed"), COMPUTED.items())
def test_all_processes_compute_in_the_way_of_the_first(found, strategy, fastest, computed):
    for own, process in zip(fastest.split(), found[strategy, fastest], strict=True):
        assert process["computed"] == f"{own} {computed}"


@pytest.mark.parametrize(("strategy", "of_torch"), [("ddp", OF_DDP), ("fsdp", {})])
def test_processes_wait_for_hours_and_ddp_copies_little(found, strategy, of_torch):
    for process in found[strategy, "fp32 bf16"]:
        assert process["settings"] == {"timeout_seconds": 6 * 3600, **of_torch}
