"""Counters of one process, and the sum of several."""

from __future__ import annotations

import os
import subprocess
import sys

from interlingua.serving.batching import BatchRecord
from interlingua.serving.metrics import ServerMetrics

COUNT = """
import sys
from interlingua.serving.batching import BatchRecord
from interlingua.serving.metrics import ServerMetrics
metrics = ServerMetrics(sys.argv[1])
metrics.observe_batch(BatchRecord(3, 10, 0.5))
print(metrics.text().decode())
"""


def test_a_batch_is_counted():
    metrics = ServerMetrics()
    metrics.observe_batch(BatchRecord(3, 10, 0.5))
    text = metrics.text().decode()
    assert "interlingua_texts_total 3.0" in text
    assert "interlingua_batch_seconds_sum 0.5" in text


def test_servers_in_one_process_count_apart():
    one, other = ServerMetrics(), ServerMetrics()
    one.observe_batch(BatchRecord(3, 10, 0.5))
    assert b"interlingua_texts_total 0.0" in other.text()


def test_processes_report_their_sum(tmp_path):
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert "interlingua_texts_total 3.0" in runs[0].stdout
    assert "interlingua_texts_total 6.0" in runs[1].stdout
