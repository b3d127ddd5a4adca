"""``interlingua embed MODEL FILE -o OUT.npy``."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

Text = str | None


def embed(
    model: Annotated[str, typer.Argument(help="Model directory or hub id, or what the backend reads.")],
    file: Annotated[str, typer.Argument(help="Text, one per line, also .gz, .xz or .zst; - for standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npy file: one float32 row per line.")],
    prompt: Annotated[Text, typer.Option(help="Name of a prompt of the model, or text put before every line.")] = None,
    batch_tokens: Annotated[int, typer.Option(help="Tokens per batch at most.", min=1)] = 16_384,
    dtype: Annotated[Text, typer.Option(help="float32, bfloat16 or float16 to compute in; float32 by default.")] = None,
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")] = None,
    normalize: Annotated[bool, typer.Option(help="Scale the vectors to length 1.")] = True,
    language: Annotated[
        Text, typer.Option(help="Language of the lines, in any code, where the model needs it.")
    ] = None,
    backend: Annotated[
        str, typer.Option(help="interlingua, sentence-transformers, onnx, openai, vectors or function.")
    ] = "interlingua",
    set: Annotated[list[str] | None, typer.Option("--set", help="BACKEND.OPTION=VALUE: openai.dimensions=256.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar and no closing line.")] = False,
) -> None:
    """Writes one vector per line of FILE; memory stays bounded whatever its length."""
    from interlingua.encoder.encode import EncodeReport
    from interlingua.evaluation.encoders import encode_function

    choices: Any = {"backend": backend, "dtype": dtype, "device": device, "settings": set or ()}
    encode = encode_function(model, **choices, show_progress=not quiet and sys.stderr.isatty())
    report = EncodeReport()
    start = time.perf_counter()
    with _lines(file) as lines:
        vectors = encode(
            lines,
            prompt=prompt,
            language=language,
            batch_tokens=batch_tokens,
            normalize=normalize,
            out=output,
            report=report,
        )
    if not quiet:
        seconds = time.perf_counter() - start
        tokens = f", {report.tokens / seconds:,.0f} tokens/s" if report.tokens else ""
        rate = f"{seconds:.1f} s, {report.texts / seconds:,.0f} lines/s{tokens}"
        print(f"{output}: {len(vectors):,} x {vectors.shape[1]} float32, {rate}", file=sys.stderr)
    if report.cut_rows:
        print(report.cuts, file=sys.stderr)


@contextlib.contextmanager
def _lines(file: str) -> Iterator[Iterator[str]]:
    """The lines without their ends; blank ones stay, so that row i is line i."""
    from interlingua.errors import DataError
    from interlingua.files import open_text

    source = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8") if file == "-" else None
    try:
        with contextlib.nullcontext(source) if source is not None else open_text(file) as text:
            yield (line.rstrip("\r\n") for line in text)
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 (byte 0x{error.object[error.start]:02x}); convert it first", path="-") from error
