"""``interlingua search DIR "question"``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from interlingua.cli.options import make_command
from interlingua.retrieval.ranking import hit_record
from interlingua.verbs.search import SearchOptions, rankings

if TYPE_CHECKING:
    from interlingua.retrieval.ranking import LanguageShare
    from interlingua.retrieval.searcher import Ranking

_SHOWN_CHARACTERS = 160
"""Maximum number of characters of a passage that are shown in a line."""


@make_command(
    SearchOptions,
    quiet="Do not report the languages of the passages found.",
    json="Write JSON, one line for each question.",
)
def search(options: SearchOptions, quiet: bool, as_json: bool) -> None:
    """Print the passages of an index that answer a question."""
    for question, ranking in rankings(options):
        if as_json:
            print(json.dumps(_record(question, ranking), ensure_ascii=False), flush=True)
            continue
        for place, hit in enumerate(ranking.hits, start=1):
            head = f"{place:>3}  {hit.score:.3f}  {hit.language or '-':<8}"
            # Flushed, as the next question may come much later.
            places = f" (and {', '.join(hit.places)})" if hit.places else ""
            print(f"{head}  {hit.id}{places}  {shortened(hit.context, hit.text)}", flush=True)
        if not ranking.hits:
            print(_nothing_found(options), file=sys.stderr, flush=True)
        elif not quiet:
            print(_share_line(ranking.shares), file=sys.stderr)


def _record(question: str, ranking: Ranking) -> dict[str, Any]:
    return {
        "question": question,
        "hits": list(map(hit_record, ranking.hits)),
        "languages": [share._asdict() for share in ranking.shares],
    }


def shortened(title: str, text: str) -> str:
    """Return a passage as one line, shortened for a terminal."""
    text = " ".join(f"{title}: {text}".removeprefix(": ").split())
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}..."


def _nothing_found(options: SearchOptions) -> str:
    """Return the line for a question without hits: what to try."""
    tries = []
    if options.mode == "text":
        tries.append("--mode vector or hybrid, because text finds only passages with these words")
    if options.languages:
        tries.append("other --languages")
    if options.where:
        tries.append("another --where")
    tries.append("other words")
    return f"nothing found; try {', or '.join(tries)}"


def _share_line(shares: list[LanguageShare]) -> str:
    """Return the languages of the ranking, next to their shares of the index."""
    parts = [
        f"{share.language or 'unknown'} {share.found:.0%} ({share.indexed:.0%} of the index)"
        for share in shares
        if share.found
    ]
    line = f"languages found: {', '.join(parts) or 'none'}"
    absent = sum(not share.found for share in shares)
    if absent:
        line = f"{line}; languages with no passage found: {absent}"
    return line
