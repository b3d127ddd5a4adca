"""``interlingua search DIR "question"``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from interlingua.search.ranking import Hit, LanguageShare

Text = str | None
SHOWN_CHARACTERS = 160
"""Of a passage, on a terminal's line."""


def search(
    folder: Annotated[str, typer.Argument(help="Folder of an index.")],
    questions: Annotated[list[str], typer.Argument(help="In any language; - reads a question a line.")],
    top: Annotated[int, typer.Option(help="Passages found at most.", min=1)] = 10,
    mode: Annotated[
        str,
        typer.Option(
            help="vector, text (words, BM25), hybrid (both, by reciprocal rank fusion), or feedback (vector; other"
            " languages are searched with the best passage too)."
        ),
    ] = "vector",
    languages: Annotated[Text, typer.Option(help="Search in these only: de,en,th.")] = None,
    per_language: Annotated[int | None, typer.Option(help="At most so many passages of each language.", min=1)] = None,
    where: Annotated[
        Text, typer.Option(help="SQL condition, such as \"json_extract(metadata, '$.year') = '2024'\".")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare with all vectors, also where the index is approximate.")
    ] = False,
    language: Annotated[Text, typer.Option(help="Of the question, where the model needs it.")] = None,
    model: Annotated[Text, typer.Option(help="Where the index's model is now, if it was moved.")] = None,
    dtype: Annotated[str, typer.Option(help="To compute in: float32, bfloat16, float16, int8.")] = "float32",
    device: Annotated[Text, typer.Option(help="cpu, cuda, cuda:1.")] = None,
    jsonl: Annotated[bool, typer.Option("--json", help="Write JSON, a line for each question.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No report of the languages found.")] = False,
) -> None:
    """Finds the passages that answer a question, in whatever language they are."""
    from interlingua.search.passage_index import PassageIndex
    from interlingua.search.searcher import Searcher, model_of

    index = PassageIndex(folder)
    options: Any = {"dtype": dtype, "device": device}
    searcher = Searcher(index, model_of(index, model=model, **options))
    wanted = [code.strip() for code in languages.split(",")] if languages else []
    read = (line.strip() for line in sys.stdin) if questions == ["-"] else iter(questions)
    for question in read:
        if not question:
            continue
        ranking = searcher.search(
            question,
            top=top,
            mode=cast(Any, mode),
            languages=wanted,
            per_language=per_language,
            where=where,
            exact=exact,
            language=language,
        )
        if jsonl:
            shares = [share._asdict() for share in ranking.shares]
            found = {"question": question, "hits": [_record(hit) for hit in ranking.hits], "languages": shares}
            print(json.dumps(found, ensure_ascii=False), flush=True)
            continue
        for place, hit in enumerate(ranking.hits, start=1):
            print(f"{place:>3}  {hit.score:.3f}  {hit.language or '-':<8}  {hit.id}  {_shortened(hit)}", flush=True)
        if not quiet:
            print(_share_line(ranking.shares), file=sys.stderr)


def _record(hit: Hit) -> dict[str, Any]:
    return {**hit._asdict(), "metadata": json.loads(hit.metadata)}


def _shortened(hit: Hit) -> str:
    text = " ".join(f"{hit.title}: {hit.text}".removeprefix(": ").split())
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def _share_line(shares: list[LanguageShare]) -> str:
    """The languages of the ranking, next to their shares of the index."""
    parts = [
        f"{share.language or 'unknown'} {share.found:.0%} ({share.indexed:.0%} of the index)"
        for share in shares
        if share.found
    ]
    absent = sum(not share.found for share in shares)
    left_out = f"; languages with no passage found: {absent}" if absent else ""
    return f"languages found: {', '.join(parts) or 'none'}{left_out}"
