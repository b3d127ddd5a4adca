"""One error in the shapes of two protocols."""

from __future__ import annotations

import json

from interlingua.serving.errors import RequestError, error_response


def test_openai_below_v1_and_inference_elsewhere():
    error = RequestError(429, "full", {"retry-after": "3"})
    openai, inference = error_response("/v1/embeddings", error), error_response("/embed", error)
    assert (openai.status_code, openai.headers["retry-after"]) == (429, "3")
    assert json.loads(openai.body)["error"] == {
        "message": "full",
        "type": "rate_limit_error",
        "param": None,
        "code": None,
    }
    assert json.loads(inference.body) == {"error": "full", "error_type": "Overloaded"}


def test_statuses_without_a_name_of_their_own():
    error = RequestError(418, "tea")
    assert (
        json.loads(error_response("/v1/models", error).body)["error"]["type"]
        == "invalid_request_error"
    )
    assert json.loads(error_response("/info", error).body)["error_type"] == "Validation"
