"""``interlingua align MODEL SOURCE TARGET -o LINKS``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from interlingua.cli.common import bar
from interlingua.cli.sides import MAX_LINE, MaxLine, SourceColumn, TargetColumn

Text = str | None
File = Path | None

Source = Annotated[
    File, typer.Argument(help="A document: a sentence per line, a table (.csv, .xlsx), or any text with --split.")
]
Target = Annotated[File, typer.Argument(help="Its translation, in the same formats.")]
List = Annotated[
    File, typer.Option("--list", help="Many documents: source TAB target [TAB links [TAB gold]] in every line.")
]
Output = Annotated[
    File, typer.Option("--output", "-o", help="File for the links, standard output by default; a folder with --list.")
]
Texts = Annotated[
    File,
    typer.Option(
        help="Linked sentences as bitext, score = 1 - cost: .tsv, .csv, .xlsx, .jsonl, .tmx or the prefix of two files."
    ),
]
Gold = Annotated[File, typer.Option(help="Right links, [0, 1]:[2] in every line; prints precision, recall and F1.")]
MaxSentences = Annotated[int, typer.Option(help="Sentences in a link at most, both sides together.", min=2)]
SkipQuantile = Annotated[
    float, typer.Option(help="Leaving a sentence alone costs this quantile of what random pairs cost.", min=0, max=1)
]
Split = Annotated[
    bool,
    typer.Option("--split", help="The documents are plain text: split it into sentences, written to LINKS.source.txt."),
]
Band = Annotated[int, typer.Option(help="Sentences beside the coarse path among which the fine one is.", min=1)]


def align(
    model: Annotated[str, typer.Argument(help="Model directory or hf:owner/name, or what the backend reads.")],
    source: Source = None,
    target: Target = None,
    list: List = None,
    output: Output = None,
    texts: Texts = None,
    gold: Gold = None,
    max_sentences: MaxSentences = 4,
    skip_quantile: SkipQuantile = 0.2,
    band: Band = 5,
    split: Split = False,
    source_language: Annotated[
        Text, typer.Option(help="Of the source, in any code; by the files' names by default: chapter.de.txt.")
    ] = None,
    target_language: Annotated[Text, typer.Option(help="Of the target.")] = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    prompt: Annotated[Text, typer.Option(help="Name of a prompt of the model, or text put before every block.")] = None,
    batch_tokens: Annotated[int, typer.Option(help="Tokens per batch at most.", min=1)] = 16_384,
    dtype: Annotated[Text, typer.Option(help="To compute in: float32 by default, bfloat16, float16, int8.")] = None,
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")] = None,
    backend: Annotated[
        str, typer.Option(help="interlingua, sentence-transformers, onnx, openai, vectors or function.")
    ] = "interlingua",
    set: Annotated[list[str] | None, typer.Option("--set", help="BACKEND.OPTION=VALUE: openai.dimensions=256.")] = None,
    max_line: MaxLine = MAX_LINE,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar and no closing lines.")] = False,
) -> None:
    """Links the sentences of two documents that are translations of each other."""
    from interlingua.errors import InterlinguaError
    from interlingua.evaluation.encoders import encode_and_identity
    from interlingua.mining.align_job import AlignJob
    from interlingua.mining.alignment import AlignConfig

    job = AlignJob(
        source=source, target=target, list=list, output=output, texts=texts, gold=gold,
        source_language=source_language, target_language=target_language, split=split,
        source_column=source_column, target_column=target_column,
        config=AlignConfig(max_sentences=max_sentences, skip_quantile=skip_quantile, band=band),
    )  # fmt: skip
    choices: Any = {"backend": backend, "dtype": dtype, "device": device, "settings": set or ()}
    encode, identity = encode_and_identity(
        model, **choices, prompt=prompt, batch_tokens=batch_tokens, identified=list is not None
    )
    with bar(quiet, last=False) as progress:
        report = job.run(encode, model=identity, stdout=sys.stdout, progress=progress)
    for line in report.lines(quiet=quiet):
        print(line, file=sys.stderr)
    if report.failed:
        raise InterlinguaError(
            f"{len(report.failed)} of {len(job.documents)} document pairs could not be aligned, see above; the rest is"
            " done, and the same command does the others"
        )
