from __future__ import annotations

import pytest

from tests.train.runs import run_python


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize(
    ("fastest", "computed"),
    [
        ("bf16 fp32", "bf16 kernel torch.bfloat16 torch.float32 torch.float32"),
        ("fp32 bf16", "fp32 torch torch.float32 torch.float32 torch.float64"),
    ],
)
def test_all_processes_compute_in_the_way_of_the_first(tmp_path, strategy, fastest, computed):
    worker = ("-m", "tests.distributed.precision_worker")
    run_python(*worker, tmp_path, strategy, *fastest.split())
    for rank, own in enumerate(fastest.split()):
        assert (tmp_path / str(rank)).read_text(encoding="utf-8") == f"{own} {computed}"
