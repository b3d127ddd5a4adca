"""Languages in the names of folders and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.corpus.formats.localization.language_places import (
    language_of_folder,
    language_of_path,
    language_place,
)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("film.de.srt", "deu_Latn"),
        ("film.de.srt.gz", "deu_Latn"),
        ("res/values-pl/strings.xml", "pol_Latn"),
        ("res/values/strings.xml", "eng_Latn"),
        ("values-pt-rBR/strings.xml", "por_Latn"),
        ("values-b+sr+Latn/strings.xml", "srp_Latn"),
        ("values-night/strings.xml", None),
        ("de.lproj/Localizable.strings", "deu_Latn"),
        ("zh-Hans.lproj/Localizable.strings", "zho_Hans"),
        ("Base.lproj/Localizable.strings", "eng_Latn"),
        ("locales/de-DE/common.json", "deu_Latn"),
        ("_locales/pt_BR/messages.json", "por_Latn"),
        ("app_de.ts", "deu_Latn"),
        ("app_pt_BR.ts", "por_Latn"),
        ("app-zh-Hant.json", "zho_Hant"),
        ("po/de/LC_MESSAGES/django.po", "deu_Latn"),
        ("sr@latin.po", "srp_Latn"),
        ("app.ts", None),
        ("/home/me/src/app/main.ts", None),
        ("README.md", None),
    ],
)
def test_the_language_of_a_path(path, code):
    assert language_of_path(path) == code


def test_the_place_and_the_region():
    place = language_place(Path("app_pt_BR.ts"))
    assert place.folder is None
    assert place.span == (4, 9)
    assert place.code.region == "BR"
    assert language_place(Path("a/de/b.json")).folder == 1
    assert language_of_folder("values-land") is None
