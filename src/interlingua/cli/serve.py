"""``interlingua serve MODEL``."""

from __future__ import annotations

from typing import Annotated

import typer

from interlingua.serve.settings import ServeSettings

DEFAULTS = ServeSettings()
PREFIX = "INTERLINGUA_SERVE_"


def serve(
    model: Annotated[str, typer.Argument(help="Model directory, training run or hf:owner/name.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.", envvar=PREFIX + "HOST")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port; 0 for any free one.", min=0, max=65_535, envvar=PREFIX + "PORT")
    ] = 8000,
    name: Annotated[
        str | None, typer.Option(help="The model's name in requests; default: its folder's.", envvar=PREFIX + "NAME")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(help="Of requests that name none: a prompt's name, or text in front.", envvar=PREFIX + "PROMPT"),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="To compute in: float32, bfloat16, float16, int8.", envvar=PREFIX + "DTYPE")
    ] = "float32",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1.", envvar=PREFIX + "DEVICE")] = None,
    workers: Annotated[
        int, typer.Option(help="Processes that share the weights.", min=1, max=256, envvar=PREFIX + "WORKERS")
    ] = 1,
    threads: Annotated[
        int | None, typer.Option(help="Of each process; default: all cores.", min=1, max=1024, envvar=PREFIX + "THREADS")
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(help="Tokens of a batch at most.", min=1, envvar=PREFIX + "BATCH_TOKENS")
    ] = DEFAULTS.batch_tokens,
    queue_tokens: Annotated[
        int, typer.Option(help="Tokens that may wait; then status 429.", min=1, envvar=PREFIX + "QUEUE_TOKENS")
    ] = DEFAULTS.queue_tokens,
    max_texts: Annotated[
        int, typer.Option(help="Texts of a request at most.", min=1, envvar=PREFIX + "MAX_TEXTS")
    ] = DEFAULTS.max_texts,
    max_request_tokens: Annotated[
        int, typer.Option(help="Tokens of a request at most.", min=1, envvar=PREFIX + "MAX_REQUEST_TOKENS")
    ] = DEFAULTS.max_request_tokens,
    max_body: Annotated[
        int, typer.Option(help="Bytes of a request at most.", min=1, envvar=PREFIX + "MAX_BODY")
    ] = DEFAULTS.max_body,
    body_seconds: Annotated[
        float, typer.Option(help="Time to send a request in.", min=0.1, envvar=PREFIX + "BODY_SECONDS")
    ] = DEFAULTS.body_seconds,
    auto_truncate: Annotated[
        bool, typer.Option(help="Cut texts that are too long, or refuse them.", envvar=PREFIX + "AUTO_TRUNCATE")
    ] = DEFAULTS.auto_truncate,
    api_key: Annotated[
        str | None, typer.Option(help="That requests must carry; better in the variable.", envvar=PREFIX + "API_KEY")
    ] = None,
) -> None:
    """Answers embedding requests over HTTP: OpenAI's protocol, text-embeddings-inference's, and a page at /."""
    from interlingua.serve.server import served_model, serve_forever

    encoder = served_model(model, name=name, prompt=prompt, dtype=dtype, device=device, threads=threads)
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
    serve_forever(encoder, settings, host=host, port=port, workers=workers)
