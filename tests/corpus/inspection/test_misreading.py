from __future__ import annotations

import pytest

from interlingua.corpus.inspection.misreading import misread_charset


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("Größe", "cp1252"),
        ("„Hallo“", "cp1252"),
        ("été à Paris", "cp1252"),
        ("Привет мир", "cp1251"),
        ("日本語の文", "latin-1"),
    ],
)
def test_misread_text_and_the_same_as_it_was_written(text, charset):
    assert misread_charset(text.encode("utf-8").decode(charset)) in (charset, "latin-1")
    assert misread_charset(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "Weiß­wein",
        "wie ich heiß’.",
        "voilà »",
        "CAFÉ »",
        "Ça va ?",
        "ЁЖ И ЛЁД",
        "NEVYSKÚŠAJTE",
    ],
)
def test_unusual_text_is_not_misread(text):
    assert misread_charset(text) is None


def test_lost_characters():
    assert misread_charset("Gr\ufffd\ufffde") == "lost"
