from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from interlingua.evaluation.report.page import page_data
from interlingua.report.pages import breakable, macro
from tests.evaluation.page_made import make, panel

number, signed, mark, overview, show_panel = (
    macro(name, "compare_tables.html") for name in ("number", "signed", "mark", "overview", "panel")
)
EVIL = '<script>alert("x")</script>&'


def about(data):
    facts = dict.fromkeys(fact for model in data["models"] for fact in model["facts"])
    return macro("about", "compare_tables.html")(data, facts, [])


def parsed(html):
    """Parse the fragment as a tree, and fail if it is not well-formed."""
    return ElementTree.fromstring(f"<root>{html}</root>")


def texts(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip()


def two_models(**changes):
    return page_data([make("weak", 0.5, **changes), make("strong", 0.9, seed=1, **changes)])


def test_overview():
    data = two_models()
    root = parsed(overview(data))
    assert [texts(head) for head in root.findall(".//thead//th")] == [
        "Task",
        "0255075100",
        "weak",
        "strong",
    ]
    (body,) = root.findall(".//tbody")
    main, group = body.findall("tr")
    assert texts(main.find("th")) == "tatoebaaccuracy, % ↑ mean of 3"
    values = [100 * value for value in data["tasks"][0]["mean"]["values"]]
    assert [texts(cell) for cell in main.findall("td")[1:]] == [
        f"{values[0]:.1f}",
        f"{values[1]:.1f}▴",
    ]
    assert [cell.get("class") for cell in main.findall("td")[1:]] == ["num", "num best"]
    assert [float(cell.get("data-good")) for cell in main.findall("td")[1:]] == data["tasks"][0][
        "mean"
    ]["values"]
    assert "better than weak: +" in main.find(".//abbr[@class='up']").get("title")
    assert group.get("class") == "group"
    assert texts(group.find("th")) == "all_3"
    assert len(root.findall(".//*[@class='track']/i")) == 4


def test_lower_is_better_marks_the_other_way_round():
    data = two_models(higher_is_better=False)
    cell = parsed(overview(data)).findall(".//tbody/tr/td")[2]
    assert texts(cell).endswith("▾")
    assert "worse than weak" in cell.find(".//abbr").get("title")
    assert (
        float(cell.get("data-good")) == 1 - data["tasks"][0]["mean"]["values"][1]
    )  # the better, the higher


def test_what_has_no_better_end_has_nothing_to_be_sorted_by():
    data = page_data([make("a", 0.5)], analyses=[panel("a", 0.2)])
    bias, hubness = parsed(show_panel(data)).findall(".//tbody/tr/td")
    assert float(bias.get("data-good")) == 1 - data["tasks"][1]["mean"]["values"][0]
    assert hubness.get("data-good") is None


def test_gaps_and_what_cant_be_compared():
    data = page_data(
        [make("a", 0.5), make("b", 0.5, data_sha256="0" * 64), make("c", 0.5, task="xsim")]
    )
    first = parsed(overview(data)).findall(".//tbody")[0].find("tr").findall("td")[1:]
    assert [texts(cell)[-1] for cell in first[1:]] == ["‡", "–"]


def test_panel():
    data = page_data([make("a", 0.5), make("b", 0.5)], analyses=[panel("a", 0.2), panel("b", 0.6)])
    root = parsed(show_panel(data))
    bias, hubness = root.findall(".//tbody/tr")
    assert texts(bias.find("th")) == "same-language bias%, lower is better, ideal 10.0how often"
    assert "20.0 – 30.0" in texts(bias.findall("td")[0])
    assert "▾" in texts(bias.findall("td")[1])
    assert [texts(cell) for cell in hubness.findall("td")] == ["1.500", "1.500"]
    assert show_panel(two_models()).strip() == ""


def test_a_model_that_was_only_analysed_has_a_column():
    data = page_data([make("a", 0.5)], analyses=[panel("only", 0.2)])
    assert texts(parsed(overview(data)).findall(".//tbody/tr/td")[-1]) == "–"
    cells = parsed(show_panel(data)).findall(".//tbody/tr/td")
    assert texts(cells[0]) == "–"
    assert texts(cells[1]).startswith(
        number(data["tasks"][1], data["tasks"][1]["mean"]["values"][1])
    )


def test_about():
    data = two_models(notes=("mind this",))
    models, sets = parsed(about(data)).findall(".//table")
    assert [[texts(cell) for cell in row] for row in models.findall("./tbody/tr")] == [
        ["revision", "r-weak", "r-strong"],
        ["pooling", "mean", "mean"],
    ]
    rows = [[texts(cell) for cell in row] for row in sets.findall("./tbody/tr")]
    assert rows == [["tatoeba", "1", "data", "ffffffffffff"], ["mind this"]]
    assert sets.findall("./tbody/tr")[1].find("td").get("colspan") == "4"
    assert len(parsed(about(two_models())).findall(".//table")[1].findall("./tbody/tr")) == 1


def test_long_settings_are_short_and_can_be_unfolded():
    changes = {
        "settings": {"languages": [f"l{n}" for n in range(12)]},
        "changed": ("languages",),
        "task": "xsim",
    }
    data = two_models(**changes)
    settings = data["tasks"][0]["settings"]
    head = parsed(overview(data)).find(".//tbody/tr/th")
    assert texts(head) == "xsim12 languagesaccuracy, % ↑ mean of 3"
    assert head.find("small").get("title") == settings
    sets = parsed(about(data)).findall(".//table")[1]
    row, remarks = sets.findall("./tbody/tr")
    assert texts(row.find("th")) == "xsim (12 languages)"
    assert texts(remarks.find(".//details")) == "All settings" + settings


def test_names_are_escaped_everywhere():
    evil = {
        "task": EVIL,
        "dataset": EVIL,
        "notes": (EVIL,),
        "settings": {"o": EVIL},
        "changed": ("o",),
    }
    data = page_data([make(EVIL, 0.5, **evil), make("b", 0.9, **evil)])
    for html in (overview(data), about(data)):
        assert "<script" not in html
        assert EVIL in texts(parsed(html))


def test_numbers_have_a_true_minus():
    task = {"scale": 100, "digits": 1}
    assert number(task, -0.043) == "−4.3"
    assert [signed(task, value) for value in (-0.043, 0.043, -0.0004)] == ["−4.3", "+4.3", "0.0"]
    data = page_data([make("strong", 0.9), make("weak", 0.5, seed=1)])
    title = parsed(overview(data)).find(".//tbody//abbr[@class='down']").get("title")
    assert "worse than strong: −" in title
    assert title.count("−") == 3
    assert "-" not in title
    tiny = {"level": 0.05, "baseline": 0, "models": data["models"]}
    assert "p = 1e−07" in mark(tiny, data["tasks"][0], (0.2, 0.1, 0.3, 1e-7))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mUSE", ["mUSE"]),
        ("all-MiniLM-L6-v2", ["all-MiniLM-", "L6-v2"]),
        ("multilingual-e5-small", ["multilingual-", "e5-small"]),
        ("org/some model (seed=1)", ["org/some ", "model ", "(seed=1)"]),
        ("a&b" + 30 * "x", ["a&b" + 30 * "x"]),
    ],
)
def test_names_break_at_sensible_places(name, parts):
    root = parsed(breakable(name))
    assert texts(root) == name
    assert len(root.findall("wbr")) == len(parts) - 1
    assert ["".join(part.itertext()) for part in root.findall("span")] == [
        part for part in parts if len(part) < 24
    ]


def test_a_mark_is_never_without_its_name():
    data = page_data([make("all-MiniLM-L6-v2", 0.5)], analyses=[panel("all-MiniLM-L6-v2", 0.2)])
    for html in (overview(data), show_panel(data), about(data)):
        for head in parsed(html).findall(".//thead"):
            marks = list(head.iter("i"))
            joined = [one.find("i") for one in head.iter("span") if one.get("class") == "named"]
            assert marks == joined
            assert all(
                texts(one) == "all-MiniLM-L6-v2"
                for one in head.iter("span")
                if one.get("class") == "named"
            )
