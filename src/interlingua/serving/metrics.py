"""Counters of a server in Prometheus's format."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

from interlingua.serving.batching import BatchRecord

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServerMetrics:
    """All counters of one process.

    Args:
        shared_folder: where several processes keep their counters, so that each reports the sum;
            None = one process.
    """

    def __init__(self, shared_folder: str | None = None) -> None:
        self._shared_folder = shared_folder
        # With a shared folder the counters write to it; a registry is made when they are read.
        registry = None
        if not shared_folder:
            registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter(
            "interlingua_requests", "Requests answered", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            "interlingua_request_seconds",
            "Time to answer a request",
            ["path"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.texts = Counter("interlingua_texts", "Texts embedded", registry=registry)
        self.tokens = Counter("interlingua_tokens", "Tokens embedded", registry=registry)
        self.truncated = Counter(
            "interlingua_texts_truncated",
            "Texts cut at the model's maximum length",
            registry=registry,
        )
        self.refused = Counter(
            "interlingua_requests_refused",
            "Requests refused because the queue was full",
            registry=registry,
        )
        self.batch_texts = Histogram(
            "interlingua_batch_texts", "Texts in a batch", buckets=_TEXTS, registry=registry
        )
        self.batch_seconds = Histogram(
            "interlingua_batch_seconds",
            "Time to embed a batch",
            buckets=_SECONDS,
            registry=registry,
        )
        self.queue_tokens = Gauge(
            "interlingua_queue_tokens",
            "Tokens waiting",
            multiprocess_mode="livesum",
            registry=registry,
        )

    def observe_batch(self, batch: BatchRecord) -> None:
        """Count a batch."""
        self.texts.inc(batch.texts)
        self.tokens.inc(batch.tokens)
        self.batch_texts.observe(batch.texts)
        self.batch_seconds.observe(batch.seconds)

    def text(self) -> bytes:
        """Return the page that Prometheus reads."""
        if self._registry is not None:
            return generate_latest(self._registry)
        # Sums over the files of all processes, also of those that have ended.
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together, path=self._shared_folder)  # type: ignore[no-untyped-call]
        return generate_latest(together)
