from __future__ import annotations

import json

from interlingua.encoder.model_info import ModelInfo
from interlingua.evaluation.provenance import provenance


def test_the_record_has_what_a_number_depends_on():
    record = provenance(
        ModelInfo(name="m", digest="0" * 64, library="function"), "query: ", {"wall_seconds": 1.5}
    )
    assert record["model"]["revision"] == "0" * 12
    assert record["versions"].keys() >= {"interlingua", "torch", "numpy"}
    assert record["prompt"] == "query: "
    assert record["wall_seconds"] == 1.5
    assert record["date"].endswith("+00:00")
    assert record.keys() >= {"command", "python", "machine", "threads", "peak_rss_bytes"}
    json.dumps(record)
