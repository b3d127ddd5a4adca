"""JSON out: arrays as numbers that read back the same."""

from __future__ import annotations

import json

import numpy as np

from interlingua.serve.json_route import json_response


def test_arrays_and_headers():
    vectors = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    reply = json_response({"vectors": vectors}, {"x-own": "1"})
    read = np.array(json.loads(reply.body)["vectors"], dtype=np.float32)
    assert np.array_equal(read, vectors)
    assert (reply.headers["x-own"], reply.headers["content-type"]) == ("1", "application/json")
