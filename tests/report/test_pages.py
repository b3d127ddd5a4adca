from __future__ import annotations

import json

import jinja2
import pytest

from interlingua.report.pages import embedded_json, macro, render_page, resource
from interlingua.report.tables import Table


def test_data_in_a_script_can_not_end_it():
    data = {"text": "</script><!-- & é"}
    written = embedded_json(data)
    assert "<" not in written
    assert json.loads(written) == data


def test_cells_are_escaped():
    html = macro("table")(Table("", ["<a>", "b"], [["b & c", "1"]]), "text")
    assert '<th class="words">&lt;a&gt;</th>' in html
    assert '<td class="words">b &amp; c</td><td>1</td>' in html
    assert '<div class="scroll text">' in html


def test_a_missing_value_is_no_blank():
    with pytest.raises(jinja2.UndefinedError, match="findings"):
        render_page("quickstart.html")


def test_every_page_has_both_colors_and_a_width():
    assert "prefers-color-scheme: dark" in resource("style.css")
    base = resource("base.html")
    assert "width=device-width" in base
    assert "default-src 'none'" in base
