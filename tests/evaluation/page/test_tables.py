from __future__ import annotations

import re
from xml.etree import ElementTree

from interlingua.evaluation.page import tables
from interlingua.evaluation.page.data import page_data
from tests.evaluation.page.made import make, panel

EVIL = '<script>alert("x")</script>&'


def parsed(html):
    """The fragment as a tree; what is not well-formed fails here."""
    return ElementTree.fromstring(f"<root>{html}</root>")


def texts(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip()


def two_models(**changes):
    return page_data([make("weak", 0.5, **changes), make("strong", 0.9, seed=1, **changes)])


def test_overview():
    data = two_models()
    root = parsed(tables.overview(data))
    assert [texts(head) for head in root.findall(".//thead//th")] == ["Task", "0255075100", "weak", "strong"]
    (body,) = root.findall(".//tbody")
    main, group = body.findall("tr")
    assert texts(main.find("th")) == "tatoebaaccuracy, % ↑ mean of 3"
    values = [100 * value for value in data["tasks"][0]["mean"]["values"]]
    assert [texts(cell) for cell in main.findall("td")[1:]] == [f"{values[0]:.1f}", f"{values[1]:.1f}▴"]
    assert [cell.get("class") for cell in main.findall("td")[1:]] == ["num", "num best"]
    assert "better than weak: +" in main.find(".//abbr[@class='up']").get("title")
    assert group.get("class") == "group"
    assert texts(group.find("th")) == "all_3"
    assert len(root.findall(".//*[@class='track']/i")) == 4


def test_lower_is_better_marks_the_other_way_round():
    data = two_models(higher_is_better=False)
    cell = parsed(tables.overview(data)).findall(".//tbody/tr/td")[2]
    assert texts(cell).endswith("▾")
    assert "worse than weak" in cell.find(".//abbr").get("title")


def test_gaps_and_what_cant_be_compared():
    data = page_data([make("a", 0.5), make("b", 0.5, data_sha256="0" * 64), make("c", 0.5, task="xsim")])
    first = parsed(tables.overview(data)).findall(".//tbody")[0].find("tr").findall("td")[1:]
    assert [texts(cell)[-1] for cell in first[1:]] == ["‡", "–"]


def test_panel():
    data = page_data([make("a", 0.5), make("b", 0.5)], analyses=[panel("a", 0.2), panel("b", 0.6)])
    root = parsed(tables.panel(data))
    bias, hubness = root.findall(".//tbody/tr")
    assert texts(bias.find("th")) == "same-language bias%, lower is better, ideal 10.0how often"
    assert "20.0 – 30.0" in texts(bias.findall("td")[0])
    assert "▾" in texts(bias.findall("td")[1])
    assert [texts(cell) for cell in hubness.findall("td")] == ["1.500", "1.500"]
    assert tables.panel(two_models()) == ""


def test_a_model_that_was_only_analysed_has_a_column():
    data = page_data([make("a", 0.5)], analyses=[panel("only", 0.2)])
    assert texts(parsed(tables.overview(data)).findall(".//tbody/tr/td")[-1]) == "–"
    cells = parsed(tables.panel(data)).findall(".//tbody/tr/td")
    assert [texts(cell)[0] for cell in cells[:2]] == ["–", cells[1].get("data-value")[2]]


def test_about():
    data = two_models(notes=("mind this",))
    models, sets = parsed(tables.about(data)).findall(".//table")
    assert [[texts(cell) for cell in row] for row in models.findall("./tbody/tr")] == [
        ["revision", "r-weak", "r-strong"],
        ["pooling", "mean", "mean"],
    ]
    assert [texts(cell) for cell in sets.find("./tbody/tr")] == ["tatoeba", "1", "data", "ffffffffffff", "mind this"]


def test_names_are_escaped_everywhere():
    evil = {"task": EVIL, "dataset": EVIL, "notes": (EVIL,), "settings": {"o": EVIL}, "changed": ("o",)}
    data = page_data([make(EVIL, 0.5, **evil), make("b", 0.9, **evil)])
    for html in (tables.overview(data), tables.about(data)):
        assert "<script" not in html
        assert EVIL in texts(parsed(html))


def test_numbers_have_a_true_minus():
    assert tables.number({"scale": 100, "digits": 1}, -0.043) == "−4.3"
