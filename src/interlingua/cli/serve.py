"""``interlingua serve [MODEL]``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from interlingua.registry import DEFAULT_MODEL
from interlingua.serve.settings import ServeSettings

DEFAULTS = ServeSettings()
PREFIX = "INTERLINGUA_SERVE_"


def _flag(name: str, help: str, **limits: Any) -> Any:
    """An option that is an environment variable too."""
    return typer.Option(f"--{name}", help=help, envvar=PREFIX + name.upper().replace("-", "_"), **limits)


Model = Annotated[str, typer.Argument(help="Model directory, training run, hf:owner/name or an installed model.")]
Index = Annotated[str | None, _flag("index", "Folder of an index of this model, for /search.")]
Calibration = Annotated[
    str | None,
    _flag(
        "calibration",
        "From interlingua score --learn: gives aligned pairs probabilities; default: calibration.json of the model.",
    ),
]
Host = Annotated[str, _flag("host", "Address to listen on; 0.0.0.0 for all.")]
Port = Annotated[int, _flag("port", "Port; 0 for any free one.", min=0, max=65_535)]
Name = Annotated[str | None, _flag("name", "The model's name in requests; default: its folder's.")]
Prompt = Annotated[str | None, _flag("prompt", "Of requests that name none: a prompt's name, or text in front.")]
Dtype = Annotated[str, _flag("dtype", "To compute in: float32, bfloat16, float16, int8.")]
Device = Annotated[str | None, _flag("device", "cpu, cuda, cuda:1.")]
Workers = Annotated[int, _flag("workers", "Processes that share the weights.", min=1, max=256)]
Threads = Annotated[int | None, _flag("threads", "Of all processes together; default: all cores.", min=1, max=1024)]
BatchTokens = Annotated[int, _flag("batch-tokens", "Tokens of a batch at most.", min=1)]
QueueTokens = Annotated[int, _flag("queue-tokens", "Tokens that may wait; then status 429.", min=1)]
MaxTexts = Annotated[int, _flag("max-texts", "Texts of a request at most.", min=1)]
MaxRequestTokens = Annotated[int, _flag("max-request-tokens", "Tokens of a request at most.", min=1)]
MaxBody = Annotated[int, _flag("max-body", "Bytes of a request at most.", min=1)]
BodySeconds = Annotated[float, _flag("body-seconds", "Time to send a request in.", min=0.1)]
AutoTruncate = Annotated[
    bool,
    typer.Option(
        "--auto-truncate/--no-auto-truncate",
        help="Cut texts that are too long, or refuse them.",
        envvar=PREFIX + "AUTO_TRUNCATE",
    ),
]
ApiKey = Annotated[
    str | None, _flag("api-key", "That requests must carry; the variable keeps it out of process lists.")
]


def serve(
    model: Model = DEFAULT_MODEL,
    index: Index = None,
    calibration: Calibration = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    name: Name = None,
    prompt: Prompt = None,
    dtype: Dtype = "float32",
    device: Device = None,
    workers: Workers = 1,
    threads: Threads = None,
    batch_tokens: BatchTokens = DEFAULTS.batch_tokens,
    queue_tokens: QueueTokens = DEFAULTS.queue_tokens,
    max_texts: MaxTexts = DEFAULTS.max_texts,
    max_request_tokens: MaxRequestTokens = DEFAULTS.max_request_tokens,
    max_body: MaxBody = DEFAULTS.max_body,
    body_seconds: BodySeconds = DEFAULTS.body_seconds,
    auto_truncate: AutoTruncate = DEFAULTS.auto_truncate,
    api_key: ApiKey = None,
) -> None:
    """Answers embedding requests over HTTP: OpenAI's protocol, text-embeddings-inference's, and a page at /."""
    from interlingua.serve.server import calibrations_for, serve_forever, served_model

    settings = ServeSettings(
        batch_tokens=batch_tokens,
        queue_tokens=queue_tokens,
        max_texts=max_texts,
        max_request_tokens=max_request_tokens,
        max_body=max_body,
        body_seconds=body_seconds,
        auto_truncate=auto_truncate,
        api_key=api_key,
    )
    encoder = served_model(model, name=name, prompt=prompt, dtype=dtype, device=device, threads=threads)
    calibrations = calibrations_for(encoder, model, calibration)
    serve_forever(encoder, settings, host=host, port=port, workers=workers, index=index, calibrations=calibrations)
