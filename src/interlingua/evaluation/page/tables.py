"""The parts of the page that need no script: all tasks, the language-agnosticism panel, models and data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

Data = Mapping[str, Any]
GLYPHS = 4
"""Shapes that tell models apart where colours can't; the style sheet draws them."""
HUES = 8
BREAK = re.compile(r"(.{4,}?[-_/+@:= ]+)(?=.{4})")
LONG = 24
"""Longer parts of names may be broken anywhere; the script breaks at the same places."""
NONE = '<td class="num none">–</td>'


def overview(data: Data) -> str:
    """A row per task, those of its groups folded below it."""
    tasks = [task for task in data["tasks"] if not task.get("panel")]
    return _table(data, "Task", [_task(data, task) for task in tasks], plot=True)


def panel(data: Data) -> str:
    """The section of the language-agnosticism panel; empty where there is no analysis."""
    measures = [task for task in data["tasks"] if task.get("panel")]
    if not measures:
        return ""
    datasets = dict.fromkeys(task["dataset"] or "sentences of its own" for task in measures)
    note = f"How much of the language is left in embeddings of {', '.join(datasets)}, by interlingua analyse."
    table = _table(data, "Measure", [_measure(data, task) for task in measures], plot=False)
    return (
        '<section id="panel" aria-labelledby="h-panel">\n<h2 id="h-panel">Language-agnosticism</h2>\n'
        f'<p class="note">{escape(note)} Small print: 95 % interval over sentences.</p>\n{table}\n</section>'
    )


def about(data: Data) -> str:
    """What was measured with what."""
    facts = dict.fromkeys(fact for model in data["models"] for fact in model["facts"])
    costs = dict.fromkeys(cost for model in data["models"] for cost in model["training"])
    head = "".join(f'<th scope="col">{named(data, place)}</th>' for place, _ in _models(data))
    rows = [
        _row(
            escape(fact.replace("_", " ")), [breakable(str(model["facts"].get(fact, "–"))) for model in data["models"]]
        )
        for fact in facts
    ]
    rows += [_row(escape(cost), [_cost(model["training"].get(cost)) for model in data["models"]]) for cost in costs]
    models = f'<table class="grid facts"><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    sets = "".join(map(_data_set, data["tasks"]))
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Task", "Version", "Data", "Revision"))
    tasks = f'<table class="grid facts sets"><thead><tr>{names}</tr></thead><tbody>{sets}</tbody></table>'
    return f'<div class="pane">{models}</div>\n<div class="pane">{tasks}</div>'


def swatch(place: int) -> str:
    """The mark of a model: a shape in its colour."""
    return f'<i class="dot m{place % HUES} g{place % GLYPHS}" aria-hidden="true"></i>'


def named(data: Data, place: int, kind: str = "name") -> str:
    """The mark of a model and its name, which no line break parts."""
    name = breakable(data["models"][place]["name"])
    return f'<span class="named">{swatch(place)}<span class="{kind}">{name}</span></span>'


def breakable(text: str) -> str:
    """Escaped, in parts that a line may end after; none so short that it says nothing."""
    parts = BREAK.sub(r"\1" + "\n", text).split("\n")
    return "<wbr/>".join(f'<span class="whole">{escape(p)}</span>' if len(p) < LONG else escape(p) for p in parts)


def number(task: Mapping[str, Any], value: float) -> str:
    """A score as the page shows it."""
    return f"{task['scale'] * value:.{task['digits']}f}".replace("-", "−")


def signed(task: Mapping[str, Any], value: float) -> str:
    """A difference as the page shows it."""
    text = number(task, abs(value))
    return text if not float(text) else f"{'+' if value > 0 else '−'}{text}"


def mark(data: Data, task: Mapping[str, Any], test: Sequence[float] | None) -> str:
    """A triangle where a difference from the baseline is significant, up for better; its numbers as a title."""
    if not test or test[3] >= data["level"]:
        return ""
    difference, low, high, p_value = test
    better = (difference > 0) == (task["higher"] is not False)
    shown = ", ".join(number(task, bound) for bound in (low, high))
    words = f"{'better' if better else 'worse'} than {data['models'][data['baseline']]['name']}"
    title = f"{words}: {signed(task, difference)} [{shown}], p = {f'{p_value:.2g}'.replace('-', '−')}"
    return f'<abbr class="{"up" if better else "down"}" title="{escape(title)}">{"▴" if better else "▾"}</abbr>'


def _task(data: Data, task: Mapping[str, Any]) -> str:
    arrow = _arrow(task)
    settings = f'<small title="{escape(task["settings"])}">{breakable(task["brief"])}</small>' if task["brief"] else ""
    mean = f"mean of {task['averaged']}".replace(" ", "\N{NO-BREAK SPACE}")
    sub = f"{escape(task['metrics'][0]['label'])}, % {arrow} {mean}"
    fold = f'<button type="button" class="fold" aria-expanded="false">{breakable(task["name"])}</button>'
    head = f"{fold}{settings}<small>{sub}</small>"
    lines = [_line(data, task, head, task["mean"], "main")]
    lines += [_line(data, task, breakable(group["name"]), group, "group") for group in task["groups"]]
    return f"<tbody>{''.join(lines)}</tbody>"


def _measure(data: Data, task: Mapping[str, Any]) -> str:
    better = {True: "higher is better", False: "lower is better"}.get(task["higher"], "")
    ideal = "" if task["ideal"] is None else f"ideal {number(task, task['ideal'])}"
    details = ", ".join(filter(None, (task["unit"], better, ideal)))
    name = f"<b>{escape(task['name'])}</b><small>{escape(details)}</small>"
    head = f'{name}<small class="definition">{escape(task["definition"])}</small>'
    return f"<tbody>{_line(data, task, head, task['mean'], 'main')}</tbody>"


def _arrow(task: Mapping[str, Any]) -> str:
    """Which end of the scale is the good one."""
    shown = {True: ("higher", "↑"), False: ("lower", "↓")}.get(task["higher"])
    return f'<abbr title="{shown[0]} is better">{shown[1]}</abbr>' if shown else ""


def _track(numbers: Mapping[str, Any]) -> str:
    """The scores as marks on a line from 0 to 100 %."""
    found = [(place, 100 * value) for place, value in enumerate(numbers["values"]) if value is not None]
    ends = (min(value for _, value in found), max(value for _, value in found)) if found else (0, 0)
    dots = "".join(
        f'<i class="dot m{place % HUES} g{place % GLYPHS}" style="--x:{value:.2f}"></i>' for place, value in found
    )
    return f'<div class="track" aria-hidden="true"><b style="--a:{ends[0]:.2f};--b:{ends[1]:.2f}"></b>{dots}</div>'


def _line(data: Data, task: Mapping[str, Any], head: str, numbers: Mapping[str, Any], kind: str) -> str:
    cells = []
    for place, _ in _models(data):
        value = _at(numbers["values"], place)
        if value is None:
            cells.append(NONE)
            continue
        text = number(task, value)
        below = ""
        if (spread := _at(numbers.get("spreads", ()), place)) is not None:
            text += f' <small class="sd">± {number(task, spread)}</small>'
        if (interval := _at(numbers.get("intervals", ()), place)) is not None:
            below = f"<small>{' – '.join(number(task, bound) for bound in interval)}</small>"
        unlike = "" if _at(task["comparable"], place, default=True) else '<abbr title="not comparable">‡</abbr>'
        best = " best" if place in numbers.get("best", ()) else ""
        marks = mark(data, task, _at(numbers.get("tests", ()), place)) + unlike
        cells.append(
            f'<td class="num{best}"{_good(task, value)}><span class="value">{text}</span>'
            f'<span class="mark">{marks}</span>{below}</td>'
        )
    plot = "" if task.get("panel") else f'<td class="plot">{_track(numbers)}</td>'
    return f'<tr class="{kind}"><th scope="row">{head}</th>{plot}{"".join(cells)}</tr>\n'


def _table(data: Data, corner: str, bodies: Sequence[str], *, plot: bool) -> str:
    head = "".join(
        '<th scope="col" class="num" aria-sort="none"><button type="button" class="sort">'
        f"{named(data, place, 'name full')}</button></th>"
        for place, _ in _models(data)
    )
    first = f'<th scope="col" aria-sort="none"><button type="button" class="sort">{corner}</button></th>'
    ticks = "".join(f'<span style="--x:{tick}">{tick}</span>' for tick in range(0, 101, 25))
    first += f'<th scope="col" class="plot"><div class="ticks" aria-hidden="true">{ticks}</div></th>' if plot else ""
    top = f"<thead><tr>{first}{head}</tr></thead>\n"
    return f'<div class="pane"><table class="grid scores" style="--step:25">{top}{"".join(bodies)}</table></div>'


def _data_set(task: Mapping[str, Any]) -> str:
    """A row of facts; what there is to remark follows on a line of its own, however long it is."""
    remarks = [f"<p>{escape(note)}</p>" for note in task["notes"]]
    if task["brief"] != task["settings"]:
        remarks.insert(0, f"<details><summary>All settings</summary>{breakable(task['settings'])}</details>")
    settings = f" ({task['brief']})" if task["brief"] else ""
    cells = [breakable(str(cell)) for cell in (task["version"], task["dataset"], task["data"])]
    row = _row(breakable(task["name"] + settings), cells)
    return row + (f'<tr class="remarks"><td colspan="4">{"".join(remarks)}</td></tr>\n' if remarks else "")


def _good(task: Mapping[str, Any], value: float) -> str:
    """What a score is sorted by: an error rate counts as what is right; what has no better end stays last."""
    good = {True: value, False: 1 - value}.get(task["higher"])
    return "" if good is None else f' data-good="{good}"'


def _row(head: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n'


def _cost(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _models(data: Data) -> list[tuple[int, Mapping[str, Any]]]:
    return list(enumerate(data["models"]))


def _at(values: Sequence[Any], place: int, default: Any = None) -> Any:
    """Models that were only analysed stand behind the columns of the tasks."""
    return values[place] if place < len(values) else default
