"""All that was found as one self-contained HTML page: no network, light and dark, narrow and wide."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from interlingua.analysis.differences import paired
from interlingua.analysis.record import Analysis
from interlingua.analysis.sections import section
from interlingua.files import PathLike, atomic_write


def write_page(found: Sequence[Sequence[Analysis]], folder: PathLike, *, only: Sequence[str] = ()) -> Path:
    """Writes ``analysis-MODEL.html``, or ``analysis-MODEL-MODEL2.html``, with chosen analyses' names behind.

    Args:
        found: the analyses of one model, or of two; of two only what both have is drawn side by side.
        folder: where to.
        only: what was chosen, so that it does not replace the page of all.

    Returns:
        The file.
    """
    models = [analyses[0].model for analyses in found if analyses]
    path = Path(folder) / f"{re.sub(r'[^A-Za-z0-9_.+-]', '_', '-'.join(['analysis', *models, *only]))}.html"
    with atomic_write(path) as file:
        file.write(render(found))
    return path


def render(found: Sequence[Sequence[Analysis]]) -> str:
    """The page's text.

    Args:
        found: see ``write_page``.
    """
    if len(found) == 2:
        both = [list(pair) for pair in paired(found)]
        compared = {side[0].task for side in both}
        sides = both + [[one] for analyses in found for one in analyses if one.task not in compared]
    else:
        sides = [[one] for one in found[0]]
    firsts = [analyses[0] for analyses in found if analyses]
    names = [first.model for first in firsts]
    legend = "".join(f'<span><i class="key m{place}"></i>{escape(name)}</span>' for place, name in enumerate(names))
    date = firsts[0].provenance["date"][:10] if firsts else ""
    return Template(_template()).substitute(
        title=escape(" and ".join(names)),
        legend=legend + '<span><i class="key ideal"></i>without a trace of the language</span>',
        date=escape(date),
        sections="".join(section(side) for side in sides),
        footer="".join(f"<p>{escape(_about(first))}</p>" for first in firsts),
    )


def _about(analysis: Analysis) -> str:
    made = analysis.provenance
    model = made["model"]
    facts = [f"{model['name']} {model['revision']}", model["library"], f"pooling {model['pooling']}"]
    facts += [f"prompt {made['prompt']!r}"] if made["prompt"] else []
    return " · ".join([*facts, made["date"], made["command"]])


def _template() -> str:
    return (importlib.resources.files("interlingua") / "analysis" / "page.html").read_text(encoding="utf-8")
