"""``interlingua debias MODEL TEXTS... -o DIR``."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlingua.cli.common import bar, split

if TYPE_CHECKING:
    from interlingua.analysis.debias import DebiasReport

Text = str | None
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        help="MODEL, then TEXTS: folders of <lang>.txt or <a>-<b>.tsv, prepared corpora, files or tables.",
        metavar="MODEL TEXTS...",
    ),
]

Prompts = Annotated[
    list[str] | None, typer.Option(help="Prompt to embed with, a name or a text; repeat it for several.")
]
Column = Annotated[
    Text, typer.Option(help="Column of .csv or .xlsx in one language; the one called by it, or text, by default.")
]


def debias(
    arguments: Arguments = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The new folder.")] = Path("debiased"),
    method: Annotated[str, typer.Option(help="project, erase, shift or center.")] = "project",
    rank: Annotated[int | None, typer.Option(help="Directions to remove; chosen by held-out retrieval.")] = None,
    sentences: Annotated[int, typer.Option(help="Sentences of a language drawn from each source.", min=8)] = 1300,
    held_out: Annotated[float, typer.Option(help="Share of them that the map is measured on.")] = 0.25,
    languages: Annotated[Text, typer.Option(help="Languages to read, in any code, with commas.")] = None,
    column: Column = None,
    prompt: Prompts = None,
    vectors: Annotated[Path | None, typer.Option(help="A .npy file of vectors to map, in place of MODEL.")] = None,
    labels: Annotated[Path | None, typer.Option(help="With --vectors: the language of each, a line each.")] = None,
    map: Annotated[Path | None, typer.Option(help="With --vectors: a map that debias wrote, to apply.")] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn and held out.")] = 0,
    backend: Annotated[str, typer.Option(help="What computes the embeddings, as for evaluate.")] = "interlingua",
    set: Annotated[list[str] | None, typer.Option("--set", help="BACKEND.OPTION=VALUE.")] = None,
    dtype: Annotated[Text, typer.Option(help="To compute in: float32 by default, bfloat16, float16, int8.")] = None,
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps all vectors for further runs.", envvar="INTERLINGUA_CACHE")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an earlier result.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the table.")] = False,
) -> None:
    """Writes the model with a map that takes the language out of its vectors; prints the panel before and after."""
    from interlingua.analysis.debias import DebiasOptions, run_debias
    from interlingua.analysis.debias_index import debias_index
    from interlingua.encoder.backends.load import backend_settings
    from interlingua.errors import ConfigError

    options = DebiasOptions(
        method=method,  # type: ignore[arg-type]  # checked there
        rank=rank,
        sentences=sentences,
        held_out_share=held_out,
        languages=tuple(split(languages)) if languages else None,
        column=column,
        prompts=tuple(prompt) if prompt else (None,),
        seed=seed,
    )
    model, *texts = arguments or [""]
    how: Any = {"options": options, "overwrite": overwrite}
    with bar(quiet) as progress:
        if vectors is not None:
            if arguments:
                raise ConfigError(f"--vectors maps stored vectors and reads no model or texts; remove {model}")
            report = debias_index(vectors, output, labels=labels, language_map=map, progress=progress, **how)
        else:
            if labels is not None or map is not None:
                raise ConfigError("--labels and --map go with --vectors; add it, or remove them")
            if not texts:
                raise ConfigError("give a model and texts: interlingua debias MODEL TEXTS... -o DIR")
            own, left = backend_settings(set or (), backend)
            if left:
                raise ConfigError(f"--set {left[0]}: expected BACKEND.OPTION=VALUE, e.g. function.version=1")
            how |= {"backend": backend, "backend_options": own, "dtype": dtype, "device": device, "cache": cache}
            report = run_debias(model, texts, output, progress=progress, **how)
    if report is not None:
        print(table(report))
    print(f"written: {output}", file=sys.stderr)


def table(report: DebiasReport) -> str:
    """The panel before and after, as lines of text."""
    from interlingua.analysis.debias import panel_values

    fitted = report.fitted
    language_map = fitted.language_map
    before = panel_values(fitted.before)
    after = panel_values(fitted.after)
    titles = {
        "own_pool": "translations found, own pool",
        "mixed_pool": "translations found, mixed pool",
        "mixed_pool_drop": "lost by mixing languages",
        "same_language": "nearest is of the same language",
        "language_variance_share": "variance between languages",
        "language_recognized": "language recognized by its mean",
    }
    removed = f", {language_map.rank} directions removed" if language_map.rank else ""
    lines = [
        f"{language_map.method}{removed}; {len(report.languages)} languages, estimated on {fitted.fitted:,} sentences,"
        f" measured on {fitted.held_out:,} others",
        f"{'%':<34}{'before':>8}{'after':>8}",
    ]
    for name, title in titles.items():
        lines.append(f"{title:<34}{_percent(before[name]):>8}{_percent(after[name]):>8}")
    if before["own_pool"] is None or math.isnan(before["own_pool"]):
        lines.append("no translations among the texts: retrieval was not measured, all directions are removed")
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
