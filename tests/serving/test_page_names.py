"""The page for a screen reader: every part has a name, and every reference a target.

Without a browser.
"""

from html.parser import HTMLParser
from importlib.resources import files

import pytest

ARIA = {"aria-controls", "aria-label", "aria-labelledby", "aria-live", "aria-selected"}
REFERENCES = ("aria-controls", "aria-labelledby", "for")
NAMED_BY_LABELS = ("input", "select", "textarea")


class Elements(HTMLParser):
    """Name and attributes of every element."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def elements():
    parser = Elements()
    parser.feed((files("interlingua.serving") / "page" / "index.html").read_text(encoding="utf-8"))
    return parser.found


def test_every_reference_has_a_target(elements):
    ids = {attributes["id"] for _, attributes in elements if "id" in attributes}
    references = [
        (name, attributes[name])
        for _, attributes in elements
        for name in REFERENCES
        if name in attributes
    ]
    assert {name for name, _ in references} == set(REFERENCES)
    assert [reference for reference in references if reference[1] not in ids] == []


def test_attributes_are_spelled_as_browsers_read_them(elements):
    spelled = {name for _, attributes in elements for name in attributes if name.startswith("aria")}
    assert spelled - ARIA == set()


def test_every_field_and_panel_has_a_name(elements):
    labels = {attributes["for"] for tag, attributes in elements if tag == "label"}
    fields = [attributes for tag, attributes in elements if tag in NAMED_BY_LABELS]
    assert [
        field for field in fields if field.get("id") not in labels and "aria-label" not in field
    ] == []
    regions = [
        attributes
        for _, attributes in elements
        if attributes.get("role") in ("tabpanel", "region", "tablist")
    ]
    assert [
        region for region in regions if region.keys().isdisjoint({"aria-label", "aria-labelledby"})
    ] == []
    assert len(fields) > 5
    assert len(regions) > 5
