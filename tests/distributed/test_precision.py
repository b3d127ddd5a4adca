from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize(
    ("fastest", "computed"),
    [
        ("bf16 fp32", "bf16 torch.bfloat16 torch.float32 torch.float32"),
        ("fp32 bf16", "fp32 torch.float32 torch.float32 torch.float64"),
    ],
)
def test_all_processes_compute_in_the_precision_of_the_first(tmp_path, strategy, fastest, computed):
    worker = [sys.executable, "-m", "tests.distributed.precision_worker"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*worker, str(tmp_path), strategy, *fastest.split()],
        env=environment,
        timeout=280,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for rank, own in enumerate(fastest.split()):
        assert (tmp_path / str(rank)).read_text(encoding="utf-8") == f"{own} {computed}"
