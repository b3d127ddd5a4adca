"""tools/draw_mixed_pool.py: the README's picture shows what docs/results/ says."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tools import draw_mixed_pool as tool

PAGE = """
## One

| model | a | b |
|---|---:|---:|
| x | **1.5** | 2 |
| y | 3 ± 0.1 | -4 |

text

| other | c |
|---|---|
| z | 5 |

## Two
| w | d |
|---|---|
| v | 6 |
"""


def test_tables_of_a_section_are_read():
    first, second = tool.tables(PAGE, "One")
    assert first == {"x": {"a": "1.5", "b": "2"}, "y": {"a": "3 ± 0.1", "b": "-4"}}
    assert second == {"z": {"c": "5"}}
    assert tool.number(first["y"]["a"]) == 3
    with pytest.raises(LookupError, match="Three"):
        tool.tables(PAGE, "Three")


def test_rows_are_sorted_and_as_in_the_results():
    rows = tool.rows(tool.results_text())
    assert len(rows) == 6
    mixed = [row.mixed_pool for row in rows]
    assert mixed == sorted(mixed, reverse=True)
    assert all(row.mixed_pool < row.own_pool <= 100 for row in rows)
    [e5] = [row for row in rows if row.name == "multilingual-e5-small"]
    assert (e5.own_pool, e5.mixed_pool) == (96.7, 50.3)


def test_the_picture_in_the_readme_is_the_latest(tmp_path):
    tool.main(["--output", str(tmp_path / "drawn.svg")])
    drawn = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
    assert drawn == tool.PICTURE.read_text(encoding="utf-8")
    assert f"({tool.PICTURE.relative_to(tool.ROOT)})" in (tool.ROOT / "README.md").read_text(
        encoding="utf-8"
    )


def test_dots_stand_at_their_values():
    root = ElementTree.fromstring(tool.draw([tool.Row("m", "n", 100.0, 0.0)]))
    circles = [part for part in root.iter() if part.tag.endswith("circle")]
    own, mixed = circles[-2:]
    assert (float(own.get("cx")), float(mixed.get("cx"))) == (tool.WIDTH - tool.RIGHT, tool.LEFT)
