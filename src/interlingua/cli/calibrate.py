"""``interlingua calibrate MODEL SOURCE TARGET --parallel HELDOUT -o CALIBRATION.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from interlingua.cli import sides
from interlingua.cli.common import steps_bar
from interlingua.cli.sides import MAX_LINE, MaxLine

Text = str | None
Output = Annotated[
    Path, typer.Option("--output", "-o", help="The calibration, .json; other language pairs in it stay.")
]
Parallel = Annotated[
    Text, typer.Option(help="Held-out translations of the same kind of text, any format of bitext; mixed in.")
]
Labels = Annotated[
    Path | None,
    typer.Option("--judged", "--labels", help="Mined pairs that someone has judged: 1 or 0 TAB source TAB target."),
]
Gold = Annotated[
    Path | None,
    typer.Option(help="All pairs that are right, id TAB id or text TAB text; beside another source it measures."),
]
Probes = Annotated[int, typer.Option(help="Held-out pairs taken at most.", min=80)]
Seed = Annotated[int, typer.Option(help="Of the draw of held-out pairs.")]


def calibrate(
    model: sides.Model,
    source: sides.Source,
    target: sides.Target,
    output: Output,
    parallel: Parallel = None,
    labels: Labels = None,
    gold: Gold = None,
    probes: Probes = 2000,
    seed: Seed = 0,
    source_language: sides.SourceLanguage = None,
    target_language: sides.TargetLanguage = None,
    source_column: sides.SourceColumn = None,
    target_column: sides.TargetColumn = None,
    layout: sides.LayoutOption = "auto",
    documents: sides.Documents = None,
    background: sides.Background = 1000,
    k: sides.K = 4,
    margin: sides.MarginOption = "ratio",
    retrieval: sides.RetrievalOption = "max",
    equal: sides.EqualOption = "exact",
    memory: sides.Memory = "4GiB",
    work: sides.Work = None,
    source_vectors: sides.SourceVectors = None,
    target_vectors: sides.TargetVectors = None,
    prompt: sides.Prompt = None,
    batch_tokens: sides.BatchTokens = 16_384,
    dtype: sides.Dtype = None,
    device: sides.Device = None,
    backend: sides.Backend = "interlingua",
    set: sides.Settings = None,
    max_line: MaxLine = MAX_LINE,
    quiet: sides.Quiet = False,
) -> None:
    """Learns what a mining score is worth: the probability that a pair is a translation."""
    from interlingua.mining.calibrate import CalibrateJob
    from interlingua.mining.job import mine_config, parse_size

    config = mine_config(
        k=k, margin=margin, retrieval=retrieval, equal=equal, memory=parse_size(memory), documents=documents,
        background=background, device=device,
    )  # fmt: skip
    job = CalibrateJob(
        output=output, config=config, parallel=parallel, labels=labels, gold=gold, probes=probes, seed=seed, work=work
    )
    both: Any = sides.two_sides(
        model, (source, target), (source_language, target_language), layout, (source_vectors, target_vectors),
        folder=job.folder, prompt=prompt, batch_tokens=batch_tokens, dtype=dtype, device=device, backend=backend,
        settings=set or (), always_load=parallel is not None, documents=documents,
        columns=(source_column, target_column),
    )  # fmt: skip
    with steps_bar(quiet) as progress:
        lines = job.run(*both, progress=progress)
    print("\n".join(lines))
