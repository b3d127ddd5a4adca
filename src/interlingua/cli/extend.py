"""``interlingua extend MODEL --pairs FILE --lang xxx -o DIR``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlingua.cli.common import split

if TYPE_CHECKING:
    from interlingua.adapt.extend import ExtendResult

Files = list[Path] | None
Model = Annotated[str, typer.Argument(help="Model directory, run or hub id.")]
Pairs = Annotated[
    list[Path],
    typer.Option(help="Bitext of the language and the pivot, in any format of prepare; may be given several times."),
]
Lang = Annotated[str, typer.Option(help="The language to add, in any code.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder of all that is made; the model is in its model/.")]
Pivot = Annotated[str, typer.Option(help="The language of the pairs that the model knows.")]
Replay = Annotated[
    Files, typer.Option(help="Text of another language (ru.txt), or a bitext: its vectors shall stay; repeatable.")
]
ReplayShare = Annotated[float, typer.Option(help="Sentences to replay for each pair, in every step.")]
ReplayWeight = Annotated[float, typer.Option(help="Weight of replay in the loss; the pairs have 1.", min=0)]
ReplaySentences = Annotated[int, typer.Option(help="Sentences of each language to replay, at most.", min=1)]
Check = Annotated[
    Files, typer.Option(help="Folder of translations on which forgetting is measured: FLORES, Tatoeba; repeatable.")
]
CheckLanguages = Annotated[str | None, typer.Option(help="Languages of these folders, with commas; all by default.")]
CheckPairs = Annotated[int, typer.Option(help="Rows of each of their sets, evenly spread; 0 = all.", min=0)]
Sts = Annotated[Files, typer.Option(help="Scored pairs on which forgetting is measured; repeatable.")]
Prompt = Annotated[str | None, typer.Option(help="Name of a prompt of the model, or text put before every sentence.")]
NewPieces = Annotated[
    int | None,
    typer.Option(help="New vocabulary, at most; 0 = none; by default 2,000 if the text falls apart.", min=0),
]
Heldout = Annotated[int, typer.Option(help="Pairs to measure on instead of training, at most a tenth.", min=1)]
Epochs = Annotated[float, typer.Option(help="Passes over the pairs.")]
BatchSize = Annotated[int, typer.Option(help="Pairs per step.", min=1)]
LearningRate = Annotated[float, typer.Option(help="Peak, per step.")]
MaxTokens = Annotated[int, typer.Option(help="Longer sentences are cut in training.", min=2)]
Seed = Annotated[int, typer.Option(help="Decides what is held out, and the order.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Threads = Annotated[int | None, typer.Option(help="CPU threads; all by default.", min=1)]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress; the tables alone.")]


def extend(
    model: Model,
    pairs: Pairs,
    lang: Lang,
    output: Output,
    pivot: Pivot = "eng_Latn",
    replay: Replay = None,
    replay_share: ReplayShare = 0.25,
    replay_weight: ReplayWeight = 1.0,
    replay_sentences: ReplaySentences = 1000,
    check: Check = None,
    check_languages: CheckLanguages = None,
    check_pairs: CheckPairs = 0,
    sts: Sts = None,
    prompt: Prompt = None,
    new_pieces: NewPieces = None,
    heldout: Heldout = 500,
    epochs: Epochs = 3.0,
    batch_size: BatchSize = 64,
    learning_rate: LearningRate = 5e-5,
    max_tokens: MaxTokens = 128,
    seed: Seed = 0,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Teaches a model another language, and prints what it gained and what the others lost."""
    from interlingua.adapt.extend import extend as run

    chosen: Any = device  # checked where it is read
    result = run(
        model, pairs, lang, output, pivot=pivot, replay=replay or (), replay_share=replay_share,
        replay_weight=replay_weight, replay_sentences=replay_sentences, check=check or (),
        check_languages=split(check_languages) if check_languages else None, check_pairs=check_pairs or None,
        sts=sts or (), prompt=prompt, new_pieces=new_pieces, heldout=heldout, epochs=epochs, batch_size=batch_size,
        learning_rate=learning_rate, max_tokens=max_tokens, seed=seed, device=chosen, threads=threads,
        progress=not quiet, on_stage=lambda line: None if quiet else print(line, flush=True),
    )  # fmt: skip
    for line in table(result):
        print(line)


def table(result: ExtendResult) -> Iterator[str]:
    """The vocabulary, the new language's sets, the forgetting check, and where the model is."""
    cut = result.vocabulary
    yield (
        f"vocabulary: {cut.before.characters_per_token:.2f} characters per token, {cut.premium:.2f} tokens for each of"
        f" the pivot's, {100 * cut.before.unknown_share:.2f} % unknown"
    )
    if cut.pieces:
        yield (
            f"grown by {cut.pieces:,} pieces: {cut.after.characters_per_token:.2f} characters per token,"
            f" {cut.premium_after:.2f} tokens for each of the pivot's; {cut.changed_texts:,} of {cut.kept_texts:,}"
            " other texts are tokenized otherwise"
        )
    retrieval = list(result.before.retrieval)
    others = [name for name in retrieval if name not in result.own]
    width = max(len(name) for name in ("mean of the others, P@1", *retrieval, *result.before.similarity))
    yield f"{'P@1, %':<{width}}  before   after  change"
    for name in (*result.own, *others):
        yield _row(name, result.before.retrieval[name], result.after.retrieval[name], width)
    if result.lost is not None:
        before = sum(result.before.retrieval[name] for name in others) / len(others)
        yield _row("mean of the others, P@1", before, before - result.lost, width)
    for name, value in result.before.similarity.items():
        yield _row(f"{name}, Spearman", value, result.after.similarity[name], width)
    yield f"gained: {result.gained:.1f} points of P@1 in {result.language}" + (
        "" if result.lost is None else f"; lost: {result.lost:.2f} on the mean of the {len(others)} others"
    )
    yield f"model: {result.model}"


def _row(name: str, before: float, after: float, width: int) -> str:
    return f"{name:<{width}}  {before:6.2f}  {after:6.2f}  {after - before:+6.2f}"
