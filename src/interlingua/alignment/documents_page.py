"""The documents of a translation memory as one self-contained HTML page.

It shows each pair of documents with its coverage and its worst links, the pairs that look wrong,
the documents without a partner, and the files that were left out with the reasons.
"""

from __future__ import annotations

from pathlib import Path

from interlingua import __version__
from interlingua.alignment.translation_memory import MemoryReport
from interlingua.config.languages import resolve_language
from interlingua.report.pages import render_page
from interlingua.report.tables import Table
from interlingua.storage.files import PathLike, atomic_write

_PAIRS_WITH_LINKS = 500
"""Number of pairs that the page shows with their worst links. With thousands of pairs, the page
would be slow to open."""


def write_documents_page(path: PathLike, report: MemoryReport, output: PathLike) -> None:
    """Write the page.

    Args:
        path: the .html file.
        report: outcomes of all documents.
        output: the file of linked texts.
    """
    name = Path(output).name
    page = render_page(
        "documents.html",
        name=name,
        languages=" and ".join(resolve_language(code).name for code in report.languages),
        report=report,
        summary=report.lines()[0],
        pairs=sorted(report.paired, key=lambda one: (one.coverage, one.paths)),
        with_links=_PAIRS_WITH_LINKS,
        doubtful=[one[:2] for one in report.doubtful],
        tables=[
            _doubtful_table(report),
            _unpaired_table(report),
            _left_out_table(report),
            Table("doubts about how documents were read", ["note"], [[n] for n in report.notes]),
        ],
        about=" · ".join([name, f"interlingua {__version__}"]),
    )
    with atomic_write(path) as file:
        file.write(page)


def _doubtful_table(report: MemoryReport) -> Table:
    paired = {one.paths for one in report.paired}
    rows = [
        [source, target, f"{score:.3f}", "yes" if (source, target) in paired else "no"]
        for source, target, score in report.doubtful
    ]
    title = "pairs by name or from a list with texts that score like wrong pairs"
    return Table(title, ["source", "target", "score", "paired"], rows, words=(0, 1, 3))


def _unpaired_table(report: MemoryReport) -> Table:
    rows = [
        [path, candidate, f"{score:.3f}" if candidate else ""]
        for path, candidate, score in report.unpaired
    ]
    title = "documents without a partner"
    return Table(title, ["document", "best candidate", "score"], rows, words=(0, 1))


def _left_out_table(report: MemoryReport) -> Table:
    rows = [list(one) for one in report.left_out]
    return Table("files left out", ["file", "reason"], rows, words=(0, 1))
