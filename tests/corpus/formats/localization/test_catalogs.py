"""Catalogs of keys in two files."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import guess_format, pair_fields, read_pairs
from interlingua.corpus.formats.localization.catalogs import read_keys
from interlingua.errors import DataError

ENGLISH = r"""<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="hello">It\'s <b>me</b>,   <xliff:g id="name">%1$s</xliff:g>!</string>
    <string name="quoted">"two  spaces\n"</string>
    <string name="app" translatable="false">ACME</string>
    <string name="only">Only here</string>
    <string name="empty">Something</string>
    <string-array name="days"><item>Monday</item><item>Tuesday</item></string-array>
    <plurals name="files"><item quantity="one">%d file</item><item quantity="other">%d files</item></plurals>
</resources>
"""  # noqa: E501
POLISH = r"""<resources>
    <string name="hello">To ja, %1$s!</string>
    <string name="quoted">"dwa"</string>
    <string name="broken">A & B</string>
    <string name="empty"/>
    <string-array name="days"><item>poniedzia\u0142ek</item><item>wtorek</item></string-array>
    <plurals name="files"><item quantity="one">%d plik</item><item quantity="few">%d pliki</item><item quantity="other">%d pliku</item></plurals>
    <string name="extra">Tylko tu</string>
</resources>
"""  # noqa: E501


def write(path, text, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def by_key(pairs):
    return {pair_fields(pair)["key"]: tuple(pair[:2]) for pair in pairs}


def test_android_by_folders_with_plurals_arrays_and_missing_keys(tmp_path, caplog):
    write(tmp_path / "res/values/strings.xml", ENGLISH)
    path = write(tmp_path / "res/values-pl/strings.xml", POLISH)
    write(tmp_path / "res/values-night/strings.xml", "<resources/>")
    skipped = Counter()
    bad = BadLines()
    pairs = list(read_pairs(path, skipped=skipped, bad=bad))
    assert by_key(pairs) == {
        "hello": ("It's me, %1$s!", "To ja, %1$s!"),
        "quoted": ("two  spaces", "dwa"),
        "days[0]": ("Monday", "poniedziałek"),
        "days[1]": ("Tuesday", "wtorek"),
        "files[one]": ("%d file", "%d plik"),
        "files[other]": ("%d files", "%d pliku"),
        "files[few]": ("%d files", "%d pliki"),
    }
    assert pairs[0][2:4] == ("eng_Latn", "pol_Latn")
    assert bad.count == 1
    assert "values-pl/strings.xml:4" in bad.first[0]
    english = tmp_path / "res/values/strings.xml"
    assert +skipped == {
        "not to be translated": 1,
        "untranslated": 1,
        f"keys missing in {path}": 1,
        f"keys missing in {english}": 1,
    }
    assert "only" in caplog.text
    assert "extra" in caplog.text


STRINGS = r"""/* A greeting. */
"hello" = "He said \"hi\"\n%@";
// a comment
plain.key = "Text; with = signs";
"broken" = "no end
"next" = "\U00e4 /* no comment */";
/* No comment provided by engineer. */
"same" = "x";
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_ios_strings_with_escapes_comments_and_a_broken_entry(tmp_path, encoding):
    text = STRINGS.replace('"broken" = "no end\n', '"broken" "no end"\n')
    path = write(tmp_path / "en.lproj/Localizable.strings", text, encoding)
    bad = BadLines()
    found = read_keys(path, Counter(), bad)
    assert {key: entry.text for key, entry in found.items()} == {
        "hello": 'He said "hi"\n%@',
        "plain.key": "Text; with = signs",
        "next": "ä /* no comment */",
        "same": "x",
    }
    assert found["hello"].note == "A greeting."
    assert found["same"].note == ""
    assert bad.count == 1
    assert ":5:" in bad.first[0]
    other = write(tmp_path / "fr.lproj/Localizable.strings", '"hello" = "Il a dit « salut »";')
    pairs = list(read_pairs(other, bad=BadLines()))
    assert [pair[2:4] for pair in pairs] == [("eng_Latn", "fra_Latn")]


def test_json_nested_i18next_and_lists(tmp_path):
    english = {"menu": {"open": "Open", "list": ["a", "b"]}, "n_one": "{{n}} file",
               "n_other": "{{n}} files", "count": 3}  # fmt: skip
    polish = {"menu": {"open": "Otwórz", "list": ["c", "d"]}, "n_one": "{{n}} plik",
              "n_few": "{{n}} pliki", "n_other": "{{n}} pliku"}  # fmt: skip
    write(tmp_path / "locales/en.json", json.dumps(english, indent=1))
    path = write(tmp_path / "locales/pl.json", json.dumps(polish))
    assert guess_format(path) == "catalog"
    skipped = Counter()
    found = by_key(read_pairs(path, skipped=skipped))
    assert found["menu.open"] == ("Open", "Otwórz")
    assert found["menu.list[1]"] == ("b", "d")
    assert found["n_few"] == ("{{n}} files", "{{n}} pliki")
    assert +skipped == {"values that are no text": 1}
    both = f"{path},{tmp_path}/locales/en.json"
    assert next(read_pairs(both))[:4] == ("Otwórz", "Open", "pol_Latn", "eng_Latn")


def test_arb_and_messages_of_browsers(tmp_path):
    arb = '{"@@locale": "%s", "hi": "%s", "@hi": {"description": "A greeting"}}'
    write(tmp_path / "app_en.arb", arb % ("en", "Hi"))
    path = write(tmp_path / "app_de.arb", arb % ("de", "Hallo"))
    (pair,) = read_pairs(path)
    assert pair[:2] == ("Hi", "Hallo")
    assert pair_fields(pair) == {"key": "hi", "note": "A greeting"}
    chrome = '{\n"hi": {"message": "%s", "description": "A note"}\n}'
    write(tmp_path / "_locales/en/messages.json", chrome % "Hi")
    path = write(tmp_path / "_locales/de/messages.json", chrome % "Hallo")
    (pair,) = read_pairs(path)
    assert pair[:2] == ("Hi", "Hallo")
    assert pair_fields(pair) == {"key": "hi", "note": "A note"}


def test_json_lines_stay_json_lines(tmp_path):
    lines = '{"source": "a", "target": "b"}\n'
    for name in ("x.de-en.json", "en.json", "de.json"):
        assert guess_format(write(tmp_path / name, lines)) == "jsonl"
    assert guess_format(write(tmp_path / "en.json", lines * 2)) == "jsonl"


def test_a_catalog_without_another_language_names_what_to_do(tmp_path):
    path = write(tmp_path / "de.lproj/a.strings", '"a" = "b";')
    with pytest.raises(DataError, match="a,b"):
        next(read_pairs(path))


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1
)
SAME_FILE = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@SAME_FILE
@given(entries=st.dictionaries(TEXT, TEXT, min_size=1))
def test_any_text_of_json_and_strings_is_read(tmp_path, entries):
    from interlingua.corpus.formats.localization.catalogs import _leaves

    path = write(tmp_path / "de.arb", json.dumps(entries))
    plain = {key: text for key, text in entries.items() if not key.startswith("@")}
    found = read_keys(path, Counter(), BadLines())
    assert {key: entry.text for key, entry in found.items()} == plain
    assert dict(_leaves({"a": {"b": []}})) == {}

    def escaped(text):
        return text.replace("\\", "\\\\").replace('"', '\\"')

    lines = (f'"{escaped(key)}" = "{escaped(text)}";' for key, text in entries.items())
    path = write(tmp_path / "de.strings", "\n".join(lines))
    found = read_keys(path, Counter(), BadLines())
    assert {key: entry.text for key, entry in found.items()} == entries
