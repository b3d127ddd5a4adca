"""``interlingua index build [MODEL] FILES -o DIR``, and ``add`` and ``delete`` for changes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from interlingua.cli.options import make_command
from interlingua.cli.train_help import unfilled
from interlingua.cli.verbs.search import shortened
from interlingua.errors import count_of
from interlingua.runtime.progress import make_progress
from interlingua.storage.json_text import parse_json
from interlingua.verbs.index import READING, IndexOptions, run_index

if TYPE_CHECKING:
    from interlingua.retrieval.index_info import IndexInfo
    from interlingua.retrieval.passage_files import Passage

EPILOG = "\n\n".join(
    [
        unfilled(
            "Actions (if MODEL is left out before a file, the model is mini):",
            "  build MODEL FILES -o FOLDER  build an index, or resume an interrupted build",
            "  add FOLDER FILES             add passages, replace those of the same file or id",
            "  delete FOLDER IDS            remove passages by id, or by --where",
            "  info FOLDER                  describe the index",
            "  list FOLDER                  list the passages",
            "  compact FOLDER               free the disk space of deleted passages",
        ),
        unfilled(
            "FILES:",
            "  .jsonl, .parquet, .csv, .tsv, .xlsx",
            "    columns text, id, title and language, or columns named by options; other columns",
            "    are metadata",
            "  .md, .html, .docx, .odt, .epub, .pdf, .srt, .vtt",
            "    documents, one passage per section",
            "  other text files",
            "    one passage per line, with the language in the file's name",
        ),
    ]
)


@make_command(
    IndexOptions,
    quiet="Show neither the progress bar nor the summary.",
    json="Write JSON, one line for each passage; for info, list.",
)
def index(options: IndexOptions, quiet: bool, as_json: bool) -> None:
    """Build, change or describe an index of passages."""
    with make_progress(quiet or options.action not in ("build", "add")) as progress:
        found = run_index(options, progress)
    line_of = _line
    if as_json:
        line_of = _json_line
    for passage in found.passages:
        print(line_of(passage))
    if found.info is not None and not (quiet and options.action == "compact"):
        _print_info(found.info, as_json)
    if quiet or options.action in READING:
        return
    if options.action == "delete":
        line = f"{count_of(found.deleted, 'passages')} deleted"
    else:
        line = (
            f"{count_of(found.added, 'passages')} added, {found.replaced:,} replaced,"
            f" {found.deleted:,} deleted, {found.unchanged:,} unchanged"
        )
    print(f"{found.folder}: {line}", file=sys.stderr)


def _print_info(info: IndexInfo, as_json: bool) -> None:
    if as_json:
        print(json.dumps(info._asdict(), ensure_ascii=False))
        return
    print(_table(info))


def _line(passage: Passage) -> str:
    return f"{passage.language or '-':<8}  {passage.id}  {shortened(passage.context, passage.text)}"


def _json_line(passage: Passage) -> str:
    """Return a passage as a JSON record, which ``index add`` can read."""
    record: dict[str, Any] = {"id": passage.id, "text": passage.text, "title": passage.title}
    record["language"] = passage.language
    known = {key: value for key, value in record.items() if value}
    if passage.document != passage.id:
        known |= {"document": passage.document, "offset": passage.offset}
        known |= {"heading": passage.heading} if passage.heading else {}
    return json.dumps({**parse_json(passage.metadata), **known}, ensure_ascii=False)


def _table(info: IndexInfo) -> str:
    languages = [f"{code or '(none)'} {count:,}" for code, count in info.languages.items()]
    rows = {
        "passages": f"{info.passages:,}",
        "languages": ", ".join(languages) or "none",
        "model": info.model,
        "dimensions": f"{info.dim:,}",
        "passage prompt": repr(info.passage_prompt),
        "question prompt": repr(info.question_prompt),
        "language map": "yes" if info.has_map else "no",
        "search": "approximate" if info.is_approximate else "exact",
        "disk usage": f"{info.bytes:,} bytes in {count_of(info.versions, 'versions')}",
    }
    return "\n".join(f"{name:<16} {value}" for name, value in rows.items())
