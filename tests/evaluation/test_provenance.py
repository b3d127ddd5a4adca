from __future__ import annotations

import json

import numpy as np

from interlingua.encoder.model_info import ModelInfo
from interlingua.evaluation.provenance import peak_rss_bytes, provenance


def test_the_record_has_what_a_number_depends_on():
    record = provenance(ModelInfo(name="m", digest="0" * 64, library="function"), "query: ", {"wall_seconds": 1.5})
    assert record["model"]["revision"] == "0" * 12
    assert record["versions"].keys() >= {"interlingua", "torch", "numpy"}
    assert record["prompt"] == "query: "
    assert record["wall_seconds"] == 1.5
    assert record["date"].endswith("+00:00")
    assert record.keys() >= {"command", "python", "machine", "threads", "peak_rss_bytes"}
    json.dumps(record)


def test_peak_memory_is_in_bytes():
    before = peak_rss_bytes()
    assert before > 30 * 2**20  # an interpreter with torch
    np.ones(2**26, dtype=np.uint8).sum()  # 64 MiB, touched
    assert peak_rss_bytes() >= before
