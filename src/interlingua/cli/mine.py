"""``interlingua mine MODEL SOURCE TARGET -o PAIRS.tsv``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from interlingua.cli import sides
from interlingua.cli.common import listed, steps_bar
from interlingua.cli.sides import MAX_LINE, MaxLine

Text = str | None
File = Path | None
Output = Annotated[
    str, typer.Option("--output", "-o", help="The pairs: .tsv, .jsonl, .csv, .xlsx or .tmx; s3://bucket/name.tsv.")
]
Threshold = Annotated[float | None, typer.Option(help="Least score, in the margin's unit.")]
Calibration = Annotated[File, typer.Option(help="From interlingua calibrate: gives each pair its probability.")]
Precision = Annotated[float | None, typer.Option(help="Keep as many pairs as are expected to be this precise, 0 to 1.")]
Check = Annotated[
    str, typer.Option(help="Columns: all, or some of language, script, length, copied, numbers, duplicate, hub.")
]
Drop = Annotated[
    str, typer.Option(help="Checks that reject pairs, with their limits or without: length=2,hub; or none.")
]
Columns = Annotated[
    Text,
    typer.Option(help="Of .tsv, .csv, .xlsx: score, source, target, probability, cosine, source_origins, checks ..."),
]
Report = Annotated[Text, typer.Option(help="Page with the best, borderline and rejected pairs.")]
Gold = Annotated[File, typer.Option(help="Pairs that are right, id TAB id or text TAB text: prints precision and F1.")]
Laser = Annotated[bool, typer.Option("--laser", help="As LASER's mine_bitexts.py does it: no checks, no --precision.")]
Approximate = Annotated[
    Text,
    typer.Option(help="Search by FAISS (ivf, hnsw) or codes (binary, int8); ivf:64 = more effort; prints the recall."),
]
Shard = Annotated[
    Text, typer.Option(help="Do the second of eight parts, 2/8; a run without it joins them. Needs --work.")
]
Plan = Annotated[bool, typer.Option("--plan", help="Only say what time, disk and memory it will take.")]


def mine(
    model: sides.Model,
    source: sides.Source,
    target: sides.Target,
    output: Output,
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
    threshold: Threshold = None,
    calibration: Calibration = None,
    precision: Precision = None,
    check: Check = "script,length,copied,numbers,duplicate,hub",
    drop: Drop = "script,length,copied,duplicate,hub",
    columns: Columns = None,
    report: Report = None,
    gold: Gold = None,
    on_error: sides.OnError = "stop",
    laser: Laser = False,
    approximate: Approximate = None,
    memory: sides.Memory = "4GiB",
    work: sides.Work = None,
    shard: Shard = None,
    plan: Plan = False,
    ray: sides.Ray = None,
    ray_cores: sides.RayCores = 1,
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
    """Finds translations in two texts; a run that was stopped goes on where it was."""
    from interlingua.mining.job import MineJob, parse_size

    job = MineJob(
        output=output, documents=documents, background=background, k=k, margin=margin, retrieval=retrieval, equal=equal,
        threshold=threshold, calibration=calibration, precision=precision, check=check, drop=drop, on_error=on_error,
        columns=listed(columns), report=report, gold=gold, laser=laser, approximate=approximate,
        memory=parse_size(memory), work=work, shard=shard, ray=ray, ray_cores=ray_cores, device=device,
    )  # fmt: skip
    both: Any = sides.two_sides(
        model, (source, target), (source_language, target_language), layout, (source_vectors, target_vectors),
        (source_column, target_column), folder=job.folder, prompt=prompt, batch_tokens=batch_tokens, dtype=dtype,
        device=device, backend=backend, settings=set or (), elsewhere=ray is not None, documents=documents)  # fmt: skip
    with steps_bar(quiet or plan) as progress:
        lines = job.plan(*both) if plan else job.run(*both, progress=progress)
    print("\n".join(lines))
