"""``interlingua embed MODEL FILE -o OUT.npy``."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from interlingua.cli.common import rate_bar
from interlingua.cli.sides import MAX_LINE, MaxLine, OnError, Ray, RayCores

Text = str | None
Files = Annotated[
    list[str],
    typer.Argument(
        help="Text, one per line, or .csv, .xlsx; also .gz, .xz, .zst; 'part-*.gz', s3://name; - is standard input."
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="The .npy file: one row per line. Of several files a folder, with one of each. Or one .parquet file for"
        " all: the columns text and vector.",
    ),
]


def embed(
    model: Annotated[str, typer.Argument(help="Model directory or hf:owner/name, or what the backend reads.")],
    files: Files,
    output: Output,
    prompt: Annotated[Text, typer.Option(help="Name of a prompt of the model, or text put before every line.")] = None,
    batch_tokens: Annotated[int, typer.Option(help="Tokens per batch at most.", min=1)] = 16_384,
    dtype: Annotated[Text, typer.Option(help="To compute in: float32 by default, bfloat16, float16, int8.")] = None,
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")] = None,
    normalize: Annotated[bool, typer.Option(help="Scale the vectors to length 1.")] = True,
    dim: Annotated[int | None, typer.Option(help="Keep so many elements of each vector, the first.", min=1)] = None,
    precision: Annotated[
        str, typer.Option(help="Of the vectors: float32, int8, or bits in signed (binary) or plain bytes (ubinary).")
    ] = "float32",
    language: Annotated[Text, typer.Option(help="Of the lines, in any code, where the model needs it.")] = None,
    column: Annotated[
        Text, typer.Option(help="Column of .csv or .xlsx; the one called by --language, or text, by default.")
    ] = None,
    backend: Annotated[
        str, typer.Option(help="interlingua, sentence-transformers, onnx, openai, vectors or function.")
    ] = "interlingua",
    set: Annotated[list[str] | None, typer.Option("--set", help="BACKEND.OPTION=VALUE: openai.dimensions=256.")] = None,
    on_error: OnError = "stop",
    ray: Ray = None,
    ray_cores: RayCores = 1,
    max_line: MaxLine = MAX_LINE,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar and no closing line.")] = False,
) -> None:
    """Writes one vector per line of FILE; memory stays bounded whatever its length."""
    from functools import partial

    from interlingua.errors import ConfigError
    from interlingua.evaluation.encoders import encode_and_identity
    from interlingua.mining.embed_job import EmbedJob

    form = {name: value for name, value in (("dim", dim), ("precision", precision)) if value not in (None, "float32")}
    if form and backend != "interlingua":
        raise ConfigError(f"--{next(iter(form))} is for our own models; drop it, or say --backend interlingua")
    job = EmbedJob(files=files, output=output, ray=ray, ray_cores=ray_cores, column=column, language=language,
                   on_error=on_error)  # fmt: skip
    choices: Any = {"backend": backend, "dtype": dtype, "device": device, "settings": set or ()}
    encode, identity = encode_and_identity(
        model, **choices, prompt=prompt, batch_tokens=batch_tokens, identified=job.to_folder, elsewhere=ray is not None
    )
    with rate_bar(quiet, "lines") as progress:
        lines = job.run(
            partial(encode, language=language, normalize=normalize, **form),
            model=" ".join(
                [
                    identity,
                    f"normalize={normalize} language={language}",
                    *([f"column={column}"] if column else []),
                    *(f"{key}={form[key]}" for key in form),
                ]
            ),
            progress=progress,
        )
    for line in lines[1:] if quiet else lines:  # what was cut is always printed
        print(line, file=sys.stderr)
