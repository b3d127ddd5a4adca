"""``interlingua export MODEL -o DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from interlingua.export.verify import Verification

Paths = list[Path] | None
Text = str | None
Texts = list[str] | None


def export(
    model: Annotated[str, typer.Argument(help="Model directory or hf:owner/name, or a run's folder (its best model).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new directory.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="Write an ONNX graph, pooling inside, for onnxruntime.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Write an ONNX graph with int8 weights and products.")] = False,
    openvino: Annotated[bool, typer.Option("--openvino", help="Write a graph for OpenVINO.")] = False,
    compact: Annotated[
        bool, typer.Option("--compact", help="One directory for all libraries and ONNX, weights once, in eight bits.")
    ] = False,
    gguf: Annotated[bool, typer.Option("--gguf", help="Write a GGUF file for llama.cpp; see --dtype.")] = False,
    static: Annotated[
        bool, typer.Option("--static", help="Train a vector for each token on --corpus: a hundred times faster.")
    ] = False,
    corpus: Annotated[
        Path | None, typer.Option(help="With --static: the folder that interlingua prepare wrote.")
    ] = None,
    dim: Annotated[int | None, typer.Option(help="With --static: width of the vectors; MODEL's by default.")] = None,
    set_: Annotated[
        Texts, typer.Option("--set", help="With --static: a key of the training run.", metavar="KEY=VALUE")
    ] = None,
    dtype: Annotated[str, typer.Option(help="To store weights in: float32, bfloat16, float16; int8.")] = "float32",
    name: Annotated[Text, typer.Option(help="The model's name in the card; the directory's by default.")] = None,
    licence: Annotated[Text, typer.Option(help="SPDX identifier for the card, e.g. Apache-2.0.")] = None,
    results: Annotated[Paths, typer.Option(help="Result files or folders, of which the card shows its own.")] = None,
    vocabulary_of: Annotated[
        Texts, typer.Option(help="Keep only the vocabulary of these files or globs: .txt, or pairs.")
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Keep only so many layers, from the first.")] = None,
    truncate_dim: Annotated[int | None, typer.Option(help="Cut vectors to so many elements, from the first.")] = None,
    ranges_of: Annotated[
        Texts, typer.Option(help="Measure the ranges of int8 vectors on these files or globs: .txt, or pairs.")
    ] = None,
    verify: Annotated[bool, typer.Option(help="Compare the vectors with those of all that runs it.")] = True,
    verify_texts: Annotated[
        Paths, typer.Option(help="Compare these texts' too: ru.txt of one sentence a line, or pairs.")
    ] = None,
    verify_only: Annotated[
        bool, typer.Option("--verify-only", help="Only compare an exported directory's vectors with MODEL's.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the directory if one of our models is in it.")
    ] = False,
) -> None:
    """Writes a directory for sentence-transformers, or graphs, or token vectors, and checks that vectors stay."""
    wanted = {"onnx": onnx, "int8": int8, "openvino": openvino, "compact": compact, "gguf": gguf}
    kinds = [kind for kind, is_wanted in wanted.items() if is_wanted]
    _refuse(static=static, kinds=kinds, only=verify_only, given={"corpus": corpus, "dim": dim, "set": set_})
    from interlingua.export.verify import with_texts_of

    samples = with_texts_of(verify_texts or ())
    options: dict[str, Any] = {
        "dtype": dtype, "name": name, "licence": licence, "results": results or (), "check": verify,
        "overwrite": overwrite, "texts": vocabulary_of or (), "layers": layers, "truncate_dim": truncate_dim,
        "ranges_of": ranges_of or (), "samples": samples, "on_verified": _print_verification,
    }  # fmt: skip
    done = _run(model, output, kinds, static=(corpus, dim, set_ or ()) if static else None, only=verify_only, **options)
    print(f"{output}: " + ("as said above" if verify_only else "written" + ("" if done else "; not checked")))


def _run(model: str, output: Path, kinds: list[str], *, static: Any, only: bool, **options: Any) -> Any:
    """The one of four jobs that is asked for."""
    if only:
        from interlingua.encoder.encoder import Encoder
        from interlingua.export.sentence_transformers import find_model
        from interlingua.export.verify import verify

        encoder = Encoder.load(find_model(model)[0])
        prompts = (None, *encoder.settings.prompts)
        return verify(encoder, output, options["samples"], prompts=prompts, on_verified=options["on_verified"])
    if static is not None:
        from interlingua.cli.export_static import export_static

        corpus, dim, overrides = static
        return export_static(model, output, corpus, dim=dim, overrides=overrides, **options)
    if kinds:
        from interlingua.export.graphs import export_graphs

        return export_graphs(model, output, kinds, **options)  # type: ignore[arg-type]
    from interlingua.export.sentence_transformers import export as run

    return run(model, output, **options)


def _refuse(*, static: bool, kinds: list[str], only: bool, given: dict[str, Any]) -> None:
    """Options that don't go together."""
    from interlingua.errors import ConfigError

    if static and (kinds or only):
        other = "verify-only" if only else kinds[0]
        raise ConfigError(f"--static and --{other}: make the token vectors first, then export their directory")
    if only and kinds:
        raise ConfigError(f"--verify-only and --{kinds[0]}: what is in the directory is compared; drop --{kinds[0]}")
    if static and given["corpus"] is None:
        raise ConfigError("--static trains on parallel text: give --corpus, the folder that interlingua prepare wrote")
    alone = [f"--{option}" for option, value in given.items() if value is not None]
    if alone and not static:
        raise ConfigError(f"{alone[0]} is for --static; drop it, or say --static")


def _print_verification(found: Verification) -> None:
    for line in found.table():
        print(line)
    print(
        f"{found.texts} texts in {len(found.worst)} languages, smallest cosine {found.minimum:.7f}"
        f" ({min(found.worst, key=found.worst.__getitem__)})"
    )
