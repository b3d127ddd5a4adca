"""Qt Linguist's files."""

from __future__ import annotations

from collections import Counter

import pytest

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import guess_format, pair_fields, read_pairs
from interlingua.errors import DataError

TS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en">
<context>
    <name>Window</name>
    <message id="open">
        <location filename="window.cpp" line="12"/>
        <location filename="window.cpp" line="30"/>
        <source>&amp;Open<byte value="x9"/>file</source>
        <comment>menu</comment>
        <extracomment>verb</extracomment>
        <translation>Datei &amp;öffnen</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation><numerusform>%n Datei</numerusform><numerusform>%n Dateien</numerusform></translation>
    </message>
    <message><source>A</source><translation type="unfinished">B</translation></message>
    <message><source>A</source><translation type="obsolete">B</translation></message>
    <message><source>A</source><translation type="vanished">B</translation></message>
    <message><source>A</source><translation></translation></message>
    <message><source>A & B</source><translation>B</translation></message>
</context>
<context><name>Other</name>
    <message><source>Last</source><translation variants="yes"><lengthvariant>Zuletzt</lengthvariant><lengthvariant>Zul.</lengthvariant></translation></message>
</context>
</TS>
"""  # noqa: E501


def test_messages_with_contexts_forms_and_types(tmp_path):
    path = tmp_path / "app_de.ts"
    path.write_text(TS)
    skipped = Counter()
    bad = BadLines()
    pairs = list(read_pairs(path, skipped=skipped, bad=bad))
    assert [tuple(pair[:2]) for pair in pairs] == [
        ("&Open\tfile", "Datei &öffnen"),
        ("%n file(s)", "%n Datei"),
        ("%n file(s)", "%n Dateien"),
        ("Last", "Zuletzt"),
    ]
    assert pair_fields(pairs[0]) == {
        "id": "open",
        "context": "Window",
        "form": "",
        "location": "window.cpp:12 window.cpp:30",
        "comment": "menu verb",
    }
    assert pair_fields(pairs[2])["form"] == "1"
    assert pair_fields(pairs[3])["context"] == "Other"
    assert pairs[0][2:4] == ("eng_Latn", "deu_Latn")
    assert +skipped == {"unfinished": 1, "obsolete": 1, "vanished": 1, "untranslated": 1}
    assert bad.count == 1
    assert ":22:" in bad.first[0]


def test_the_language_is_declared_given_or_in_the_name(tmp_path):
    text = TS.replace(' language="de_DE"', "")
    path = tmp_path / "app_fr.ts"
    path.write_text(text)
    assert next(read_pairs(path, bad=BadLines())).target_language == "fra_Latn"
    path = tmp_path / "app.ts"
    path.write_text(text)
    assert guess_format(path) == "qt"
    assert next(read_pairs(path, target_language="it")).target_language == "ita_Latn"
    with pytest.raises(DataError, match="--target-language"):
        next(read_pairs(path))


def test_tsonga_of_moses_stays_moses(tmp_path):
    for name in ("news.ts", "news.en"):
        (tmp_path / name).write_text("a\n")
    assert guess_format(tmp_path / "news.ts") == "moses"
