"""An endpoint with OpenAI's embeddings protocol as an encoder, using only the standard library.

Texts are sent in batches, several requests at a time. After a temporary failure (the endpoint is
starting, busy or limits the rate) a request is repeated after a pause that doubles each time; any
other failure ends the run with the endpoint's answer. The API key is sent only to the endpoint's
host and never shown.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import sleep
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import AtLeast, CheckedSettings
from interlingua.encoder.backends.foreign import Choices, ForeignEncoder
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.model_info import ModelInfo
from interlingua.encoder.texts import is_blank
from interlingua.errors import ConfigError, TaskError, count_of
from interlingua.storage.json_text import parse_json

DEFAULT_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
# HTTP codes of temporary failures: timeouts, conflicts, rate limits, and errors of the server.
TRY_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}
LONGEST_PAUSE_SECONDS = 60.0
_NO_VECTOR: dict[str, bool] = {"changes_vectors": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenAIOptions(CheckedSettings):
    """Options of the backend ``openai``."""

    base_url: str = field(default="", metadata=_NO_VECTOR)
    """The URL before /embeddings; default: $OPENAI_BASE_URL, or OpenAI's own."""
    dimensions: Annotated[int, AtLeast(0)] = 0
    """Width to ask for; 0 = the model's own."""
    encoding: Literal["base64", "float"] = field(default="base64", metadata=_NO_VECTOR)
    """The encoding of vectors to request; an answer in the other one is read too."""
    key_variable: str = field(default="OPENAI_API_KEY", metadata=_NO_VECTOR)
    """Environment variable with the API key; if it is not set, no key is sent."""
    batch_texts: Annotated[int, AtLeast(1)] = field(default=64, metadata=_NO_VECTOR)
    """Texts per request."""
    parallel: Annotated[int, AtLeast(1)] = field(default=4, metadata=_NO_VECTOR)
    """Requests under way at a time."""
    timeout_seconds: Annotated[float, AtLeast(0.001)] = field(default=60.0, metadata=_NO_VECTOR)
    """Longest wait for an answer."""
    retries: Annotated[int, AtLeast(0)] = field(default=5, metadata=_NO_VECTOR)
    """Further tries after a temporary failure, with pauses of 1, 2, 4, ... seconds or as the
    endpoint requests."""


class OpenAIEncoder(ForeignEncoder):
    """A model behind ``POST {base_url}/embeddings``.

    OpenAI's server, text-embeddings-inference, vLLM, llama.cpp and ollama support this protocol. A
    change of the weights there goes unnoticed, so a result has no revision, and vectors are kept
    under the URL and the model's name. Blank texts, which endpoints refuse, are not sent and get
    the zero vector.

    Args:
        model: the model's name there.
        name: the encoder's name in results.
        options: see ``OpenAIOptions``.

    Raises:
        ConfigError: the URL is invalid or contains a password, or the model's name is a URL.
    """

    Options = OpenAIOptions
    has_files = False
    portion_texts = 512

    def __init__(
        self, model: str, *, name: str | None = None, options: OpenAIOptions | None = None
    ) -> None:
        self.options = options or OpenAIOptions()
        self._model = model
        url = (self.options.base_url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
        if "://" in model:
            raise ConfigError(
                f"invalid model {model!r}: expected the name of a model at the endpoint, found"
                f" an address; set the address as openai.base_url or ${URL_VARIABLE}"
            )
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"base_url {url!r}: expected a web address, for example http://localhost:8080/v1"
            )
        if parts.username or parts.password:
            raise ConfigError(
                f"base_url contains a password; put the key into ${self.options.key_variable}"
                " instead"
            )
        self._url = f"{url}/embeddings"
        self.dim = self.options.dimensions
        self._answered = False
        self._dead = ""
        identity = f"{url} {model} {self.options.dimensions or ''}".strip()
        self.info = ModelInfo(
            name=name or model, digest=None, library=f"openai endpoint {url}", kept_as=identity
        )

    @classmethod
    def load(cls, model: str, choices: Choices) -> OpenAIEncoder:
        """Return an encoder for ``model``, the model's name at the endpoint."""
        options, overrides = cls.own_options(choices, "openai")
        made = cls(model, name=choices.name, options=options)
        made.info = made.info.with_overrides(overrides)
        return made

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        prompted = [prompt + text for text in texts if not is_blank(text)]
        if not prompted and not self.dim:  # the width is only known from an answer
            self.dim = self._ask(["a"]).shape[1]
        vectors = self._ask_in_batches(prompted)
        if len(prompted) == len(texts):
            return vectors
        found = np.zeros((len(texts), self.dim or vectors.shape[1]), dtype=np.float32)
        found[[row for row, text in enumerate(texts) if not is_blank(text)]] = vectors
        return found

    def _ask_in_batches(self, prompted: list[str]) -> Float32[ndarray, "n d"]:
        """Embed texts, several requests at a time."""
        if not prompted:
            return np.zeros((0, self.dim), dtype=np.float32)
        size = self.options.batch_texts
        batches = [prompted[first : first + size] for first in range(0, len(prompted), size)]
        with ThreadPoolExecutor(self.options.parallel, thread_name_prefix="openai") as pool:
            # After an error, or Ctrl-C, the requests that wait are not sent any more.
            try:
                return np.concatenate(list(pool.map(self._ask, batches)))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _ask(self, texts: list[str]) -> Float32[ndarray, "n d"]:
        """Send a request, and repeat it while its failure may be temporary.

        If it fails in all tries and no request was ever answered, later requests are not sent.
        """
        if self._dead:
            raise TaskError(self._dead)
        body: dict[str, Any] = {
            "model": self._model,
            "input": texts,
            "encoding_format": self.options.encoding,
        }
        if self.options.dimensions:
            body["dimensions"] = self.options.dimensions
        for tried in range(self.options.retries + 1):
            try:
                vectors = self._vectors(self._post(body), len(texts))
                self._answered = True
                return vectors
            except urllib.error.HTTPError as error:
                reason = self._reason(error)
                pause = error.headers.get("Retry-After", "")
                if error.code not in TRY_AGAIN:
                    raise TaskError(
                        f"{self._url} answered {error.code}: {reason}{self._remedy(error.code)}"
                    ) from error
            except (OSError, EOFError) as error:
                # No connection, or it broke, or timed out.
                reason = str(getattr(error, "reason", error)) or type(error).__name__
                pause = ""
            if tried < self.options.retries:
                sleep(_pause(tried, pause))
        failure = (
            f"{self._url} returned no vectors in {self.options.retries + 1} tries ({reason});"
            " check that the server runs and is reachable, or raise openai.timeout_seconds or"
            " openai.retries"
        )
        # If no request was ever answered, the next batches fail at once.
        self._dead = "" if self._answered else failure
        raise TaskError(failure)

    def _post(self, body: dict[str, Any]) -> bytes:
        request = urllib.request.Request(
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        # Only for this host: a redirection to another one does not take the key along.
        if key := os.environ.get(self.options.key_variable):
            request.add_unredirected_header("Authorization", f"Bearer {key}")
        with urllib.request.urlopen(request, timeout=self.options.timeout_seconds) as answer:
            content: bytes = answer.read()
        return content

    def _vectors(self, content: bytes, count: int) -> Float32[ndarray, "n d"]:
        try:
            # The protocol leaves the order open, and numbers the vectors.
            data = sorted(parse_json(content.decode())["data"], key=lambda entry: entry["index"])
            rows = [_vector(entry["embedding"]) for entry in data]
            numbers = [entry["index"] for entry in data]
            if numbers != list(range(count)) or len({len(row) for row in rows}) != 1:
                raise ValueError(
                    f"{count_of(len(rows), 'vectors')} for {count} texts, or vectors of"
                    " different widths"
                )
            return np.stack(rows)
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise TaskError(
                f"{self._url}: the answer is not a list of embeddings ({reason}); check base_url"
            ) from error

    def _reason(self, error: urllib.error.HTTPError) -> str:
        """Return the endpoint's message about a failure, in one line and without the key."""
        answer = error.read(2000).decode("utf-8", "replace")
        # {"error": {"message": TEXT}}, {"error": TEXT}, or a text that is not JSON.
        with contextlib.suppress(ValueError, AttributeError):
            found = parse_json(answer).get("error", answer)
            if isinstance(found, dict):
                found = found.get("message", answer)
            answer = str(found)
        # Some endpoints repeat the key that they refuse.
        key = os.environ.get(self.options.key_variable)
        if key:
            answer = answer.replace(key, "...")
        return " ".join(answer.split())[:200] or str(error.reason)

    def _remedy(self, code: int) -> str:
        if code in (401, 403):
            return f"; set {self.options.key_variable} to a valid key"
        if code == 404:
            return "; check base_url and the name of the model"
        return ""


def _vector(embedding: Any) -> Float32[ndarray, " d"]:
    """Return a vector from base64 of little-endian floats, or from a list of numbers."""
    if isinstance(embedding, str):
        content = base64.b64decode(embedding, validate=True)
        return np.frombuffer(content, dtype="<f4").astype(np.float32)
    return np.array(embedding, dtype=np.float32)


def _pause(tried: int, retry_after: str) -> float:
    """Return the seconds until the next try: as the endpoint requests, or longer each time.

    A random part keeps several processes from repeating their requests at the same time.
    """
    seconds = 2.0**tried * (0.75 + random.random() / 2)
    # The header may also be a date, which is ignored.
    if retry_after.replace(".", "", 1).isdigit():
        seconds = float(retry_after)
    return min(LONGEST_PAUSE_SECONDS, seconds)
