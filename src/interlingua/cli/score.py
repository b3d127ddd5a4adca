"""``interlingua score MODEL BITEXT``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from interlingua.cli.common import listed, rate_bar
from interlingua.cli.sides import (
    MAX_LINE,
    Backend,
    BatchTokens,
    Device,
    Dtype,
    K,
    MaxLine,
    Model,
    OnError,
    Prompt,
    Quiet,
    Settings,
    Text,
)

File = Path | None
Number = float | None

Bitext = Annotated[
    str,
    typer.Argument(
        help=".tsv, .csv, .xlsx, .tmx, .jsonl ..., the prefix of Moses files or a.de,a.en; - is standard input."
    ),
]
Output = Annotated[
    File, typer.Option("--output", "-o", help="File, by whose name the format is; standard output by default.")
]
Format = Annotated[Text, typer.Option(help="Of the output: tsv, jsonl or csv, to a file any format.")]
InputFormat = Annotated[Text, typer.Option(help="By the name by default, tsv from standard input.")]
SourceLanguage = Annotated[Text, typer.Option(help="Any code; by the file's name or content by default.")]
TargetLanguage = Annotated[Text, typer.Option(help="Any code; from the file's name by default.")]
MarginOption = Annotated[str, typer.Option(help="ratio or distance.")]
Window = Annotated[int, typer.Option(help="Pairs of the stream among whose texts neighbours are looked for.", min=2)]
Cosine = Annotated[bool, typer.Option("--cosine", help="Plain cosine in place of a margin; needs no window.")]
Threshold = Annotated[Number, typer.Option(help="Keep pairs of at least this score.")]
CalibrationFile = Annotated[File, typer.Option(help="From --learn: gives each pair its probability.")]
Probability = Annotated[Number, typer.Option(help="Keep pairs that are translations with at least this one, 0 to 1.")]
Precision = Annotated[Number, typer.Option(help="Keep as many pairs as are expected to be this precise, 0 to 1.")]
Prior = Annotated[Number, typer.Option(help="Share of translations; estimated from the first window by default.")]
Check = Annotated[
    str,
    typer.Option(help="Checks to measure: all, or some of language, script, length, copied, numbers, duplicate, hub."),
]
Drop = Annotated[str, typer.Option(help="Checks that reject pairs, with their limits or without: length=2,script.")]
Columns = Annotated[
    Text,
    typer.Option(
        help="Of .tsv, .csv and .xlsx: score, source, target, source_language, probability, cosine, reasons, checks."
    ),
]
Rejected = Annotated[File, typer.Option(help="File for all other pairs with the reasons, .tsv, .jsonl, .csv or .xlsx.")]
BadLinesFile = Annotated[
    File, typer.Option("--bad-lines", help="Where --on-error skip keeps them: OUTPUT.bad-lines.tsv by default.")
]
Learn = Annotated[File, typer.Option(help="Write no pairs but this calibration file, from --judged or --parallel.")]
Labels = Annotated[
    File,
    typer.Option(
        "--judged", "--labels", help="With --learn: judged pairs of the bitext, 1 or 0 TAB source TAB target."
    ),
]
Parallel = Annotated[Text, typer.Option(help="With --learn: held-out translations, any format of bitext; mixed in.")]


def score(
    model: Model,
    bitext: Bitext,
    output: Output = None,
    format: Format = None,
    input_format: InputFormat = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    k: K = 4,
    margin: MarginOption = "ratio",
    window: Window = 8192,
    cosine: Cosine = False,
    threshold: Threshold = None,
    calibration: CalibrationFile = None,
    probability: Probability = None,
    precision: Precision = None,
    prior: Prior = None,
    check: Check = "",
    drop: Drop = "none",
    columns: Columns = None,
    rejected: Rejected = None,
    on_error: OnError = "stop",
    bad_lines: BadLinesFile = None,
    learn: Learn = None,
    labels: Labels = None,
    parallel: Parallel = None,
    prompt: Prompt = None,
    batch_tokens: BatchTokens = 16_384,
    dtype: Dtype = None,
    device: Device = None,
    backend: Backend = "interlingua",
    set: Settings = None,
    max_line: MaxLine = MAX_LINE,
    quiet: Quiet = False,
) -> None:
    """Scores or filters a bitext of any length as it streams by, in its order."""
    from interlingua.evaluation.encoders import encode_and_identity
    from interlingua.mining.filter import filter_config
    from interlingua.mining.score import score_config
    from interlingua.mining.score_job import ScoreJob
    from interlingua.mining.score_learning import learn_job

    config = score_config(margin, k=k, window=window, cosine=cosine)
    limits = filter_config(check, drop, threshold=threshold, probability=probability, precision=precision, prior=prior)
    job = ScoreJob(
        input=bitext, input_format=input_format, source_language=source_language, target_language=target_language,
        output=output, format=format, columns=listed(columns), rejected=rejected, calibration=calibration,
        on_error=on_error, bad_lines=bad_lines, config=config, selection=limits,
    )  # fmt: skip
    learner = learn_job(learn, labels, parallel, config)
    stream = job.open()
    choices: Any = {"backend": backend, "dtype": dtype, "device": device, "settings": set or ()}
    known = bool(calibration or learner)
    encode, identity = encode_and_identity(model, **choices, prompt=prompt, batch_tokens=batch_tokens, identified=known)
    with rate_bar(quiet, "pairs") as progress:
        if learner is not None:
            lines = learner.run(stream, encode, model=identity, progress=progress)
        else:
            lines = job.run(stream, encode, model=identity, stdout=sys.stdout, progress=progress)
    print("\n".join(lines), file=sys.stderr)
