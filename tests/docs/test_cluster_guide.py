"""docs/how-to/train-on-a-cluster.md: what its pods call is what torchrun reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from torch.distributed.run import parse_args

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "train-on-a-cluster.md"
COMMAND = re.compile(r"^ *command: (\[.*?\])$", re.M | re.S)
PYTORCH_JOB = {"RANK": "1", "MASTER_ADDR": "train-master-0", "MASTER_PORT": "23456"}
INDEXED_JOB = {"JOB_COMPLETION_INDEX": "1"}
"""Environment that Kubernetes sets in the second pod, by kind of job."""


@pytest.mark.parametrize(
    ("place", "variables", "address"),
    [(0, PYTORCH_JOB, "train-master-0"), (1, INDEXED_JOB, "train-0.train")],
)
def test_a_pod_calls_torchrun_with_its_place(place, variables, address):
    listed = COMMAND.findall(GUIDE.read_text(encoding="utf-8"))[place]
    for name, value in variables.items():
        listed = listed.replace(f"$({name})", value)
    command = json.loads(listed)  # a list in quotes is the same in YAML
    assert command.pop(0) == "torchrun"
    assert "$(" not in listed, "a variable that the pod does not have"
    read = parse_args(command)
    assert (read.nnodes, read.nproc_per_node, read.node_rank) == ("2", "8", 1)
    assert read.master_addr == address
    assert (read.module, read.training_script) == (True, "interlingua")
    assert read.training_script_args == ["train", "run.toml"]


def test_the_first_pods_name_is_made_of_job_and_service():
    jobs = GUIDE.read_text(encoding="utf-8").split("kind: Service")[1]
    service, job = re.findall(r"metadata: {name: (\S+)}", jobs)
    (subdomain,) = re.findall(r"subdomain: (\S+)", jobs)
    assert subdomain == service
    assert re.findall(r"job-name: (\S+)}", jobs) == [job]
    assert f'"--master-addr", "{job}-0.{service}"' in jobs
