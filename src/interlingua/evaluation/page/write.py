"""The page: the template with style, script and data in it, so that the file needs no other file."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

from interlingua.evaluation.page import tables


def render_page(data: Mapping[str, Any]) -> str:
    """The whole page as HTML.

    Args:
        data: from ``page_data``.
    """
    return Template(_resource("page.html")).substitute(
        title=escape(f"interlingua: {_listed([model['name'] for model in data['models']])}"),
        style=_resource("page.css"),
        script=_resource("page.js"),
        data=_embedded(data),
        date=escape(data["date"].replace("T", " ").replace("+00:00", " UTC")),
        headline=escape(headline(data)),
        summary=escape(summary(data)),
        models="".join(f"<li>{tables.named(data, place)}</li>" for place in range(len(data["models"]))),
        nav=_nav(data),
        overview_note=_overview_note(data),
        overview=tables.overview(data),
        panel=tables.panel(data),
        errors_note=_errors_note(data),
        errors_hidden="" if data["wrong"] else " hidden",
        about=tables.about(data),
        footer=escape(f"interlingua {data['version']}. One file; it loads nothing."),
    )


def headline(data: Mapping[str, Any]) -> str:
    """What is compared."""
    names = [model["name"] for model in data["models"]]
    if len(names) == 1:
        return f"{names[0]}, measured"
    return f"{_listed(names)}, side by side" if len(names) < 4 else f"{len(names)} models, side by side"


def summary(data: Mapping[str, Any]) -> str:
    """The result in two sentences: how much was measured, and who is best at how many tasks."""
    tasks = [task for task in data["tasks"] if not task.get("panel")]
    languages = {code for task in tasks for row in (*task["rows"], *task["pairs"]) for code in row["languages"]}
    found = f"{_count(len(tasks), 'task')}, {_count(len(languages), 'language')}."
    wins = [0] * len(data["models"])
    for task in tasks:
        for place in task["mean"].get("best", ()):
            wins[place] += 1
    order = sorted((place for place, won in enumerate(wins) if won), key=lambda place: -wins[place])
    if order:
        named = [f"{data['models'][place]['name']} in {wins[place]}" for place in order]
        found += f" Best scores: {_listed(named)}."
    return found


def _nav(data: Mapping[str, Any]) -> str:
    panel = any(task.get("panel") for task in data["tasks"])
    sections = {"overview": "Tasks", "languages": "Languages", "map": "Heat map"}
    sections |= {"panel": "Agnosticism"} if panel else {}
    sections |= {"errors": "Errors"} if data["wrong"] else {}
    sections |= {"about": "Data"}
    return "".join(f'<a href="#{target}">{words}</a>' for target, words in sections.items())


def _overview_note(data: Mapping[str, Any]) -> str:
    note = "Means over language pairs or sets, the best in bold; ↑ ↓ the better end. A task unfolds into its groups."
    if _tested(data):
        base = escape(data["models"][data["baseline"]]["name"])
        note += (
            f' <span class="up">▴</span> <span class="down">▾</span> better or worse than {base}, p &lt; '
            f"{data['level']} by paired bootstrap of the items ({data['resamples']:,} resamples, each row on its own)."
        )
    if any(task["higher"] is False for task in data["tasks"] if not task.get("panel")):
        note += " Sorted by a model, an error rate counts as what is left to 100 %."
    if not all(all(task["comparable"]) for task in data["tasks"]):
        note += " ‡ measured on other data, by another version or with other settings than the first model."
    return note


def _tested(data: Mapping[str, Any]) -> bool:
    return any("tests" in task["mean"] for task in data["tasks"])


def _errors_note(data: Mapping[str, Any]) -> str:
    kept = len(data["wrong"])
    return (
        f"A sample of {_count(kept, 'query', 'queries')} that at least one model got wrong: the text that should have "
        "come, and what each model retrieved. Chosen by checksum, not by how wrong they are. Words that the expected "
        "text does not have are marked."
    )


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON that can't end its script element: no <, so no tag and no comment either."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return (importlib.resources.files("interlingua.evaluation.page") / name).read_text(encoding="utf-8")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
