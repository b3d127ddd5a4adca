"""Catalogues made on the spot: invented languages in which every English word has one
translation."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import polib
import pytest

SUBJECTS = [
    "the user",
    "the server",
    "the page",
    "a password",
    "this file",
    "your account",
    "the address",
    "the image",
]
VERBS = [
    "was changed",
    "could not be found",
    "is not valid",
    "was removed",
    "must be confirmed",
    "has been saved",
]
ENDINGS = [
    "today",
    "again",
    "by the administrator",
    "without an error",
    "for this site",
    "in the last hour",
    "on request",
]
ALPHABETS = {"ru": "абвгдежзиклмнопрст", "el": "αβγδεζηθικλμνξοπρσ", "de": "aeiounrstlmkdgbpfh"}


def translate(text: str, locale: str) -> str:
    """Replace every word by a fixed word of the locale's letters."""
    alphabet = ALPHABETS[locale]

    def word(english: str) -> str:
        draw = random.Random(f"{locale} {english}")
        return "".join(draw.choices(alphabet, k=3 + len(english) // 2))

    return " ".join(map(word, text.split()))


def write_catalogue(path: Path, entries: dict[str, str]) -> None:
    """Write a compiled catalogue with only these entries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    catalogue.extend(polib.POEntry(msgid=english, msgstr=text) for english, text in entries.items())
    catalogue.save_as_mofile(str(path))


@pytest.fixture(scope="session")
def catalogues(tmp_path_factory) -> Path:
    """A folder as packages have it: ``app/locale/<locale>/LC_MESSAGES/app.mo`` in three
    languages."""
    folder = tmp_path_factory.mktemp("catalogues")
    sentences = [" ".join(parts) for parts in itertools.product(SUBJECTS, VERBS, ENDINGS)]
    random.Random(0).shuffle(sentences)
    for locale in ALPHABETS:
        entries = {
            english: translate(english, locale)
            for english in [*sentences, "password", "server", "page"]
        }
        write_catalogue(folder / "app" / "locale" / locale / "LC_MESSAGES" / "app.mo", entries)
    return folder
