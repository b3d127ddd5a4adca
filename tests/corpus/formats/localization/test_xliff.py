"""XLIFF of both versions: what is read, and the same file with scores."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    TextPair,
    pair_fields,
    read_pairs,
    uncompressed_name,
    write_pairs,
)
from interlingua.errors import DataError

OLD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- <trans-unit id="no"><source>a</source><target>b</target></trans-unit> -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:x="urn:x">
  <file original="app/main.ui" source-language="en" target-language="de-CH" x:more='1'>
    <header><x:any/></header>
    <body>
      <group id="g"><trans-unit id="open" approved="yes">
        <source>Open file</source>
        <target state="final">Datei öffnen</target>
        <note>Menu item</note>
      </trans-unit></group>
      <trans-unit id="count"><source>You have <g id="1"><x id="2"/></g> new<bpt id="3">[</bpt>
 messages.<ept id="3">]</ept></source><target>Neue <g id="1"><x id="2"/></g>
 Nachrichten.</target><x:kept a="&#10;"/></trans-unit>
      <trans-unit id="new"><source>Not yet</source><target state="needs-translation">Not yet</target></trans-unit>
      <trans-unit id="none"><source>No target</source></trans-unit>
      <trans-unit id="keep" translate="no"><source>ACME</source><target>ACME</target></trans-unit>
      <group translate="no"><trans-unit id="in"><source>A</source><target>B</target></trans-unit>
      </group>
      <trans-unit id="parts"><source>One. Two.</source>
        <seg-source><mrk mtype="seg" mid="0">One.</mrk> <mrk mtype="seg" mid="1">Two.</mrk></seg-source>
        <target><mrk mtype="seg" mid="0">Eins.</mrk> <mrk mtype="seg" mid="1"/></target>
      </trans-unit>
    </body>
  </file>
</xliff>
"""  # noqa: E501
NEW = """\
<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="fr">
 <file id="f1">
  <unit id="u1">
   <notes><note id="n1">A note.</note></notes>
   <originalData><data id="d1">%s</data></originalData>
   <segment id="s1" state="final"><source>First <pc id="1">one</pc>.</source><target>Un.</target></segment>
   <ignorable><source> </source></ignorable>
   <segment><source>Second <ph id="2" dataRef="d1"/>.</source><target>Deux <ph id="2" dataRef="d1"/>.</target></segment>
   <segment><source>Third.</source></segment>
  </unit>
  <group translate="no" id="g"><unit id="u2"><segment><source>A</source><target>B</target></segment></unit></group>
  <unit id="u3"><mtc:matches xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"><mtc:match ref="#s1"><source>x</source><target>y</target></mtc:match></mtc:matches><segment id="s1"><source>Four.</source><target>Quatre.</target></segment></unit>
 </file>
</xliff>
"""  # noqa: E501


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def scored(path):
    """Return the pairs of a file with scores from 1.1 on."""
    return [
        pair._replace(score=1.1 + number).with_measures({"cosine": 0.5, "reasons": ["script"]})
        for number, pair in enumerate(read_pairs(path))
    ]


def test_units_of_1_2_with_segments_states_tags_and_what_is_left_out(tmp_path):
    skipped = Counter()
    pairs = list(read_pairs(write(tmp_path / "a.xlf", OLD), skipped=skipped))
    assert [tuple(pair[:2]) for pair in pairs] == [
        ("Open file", "Datei öffnen"),
        ("You have  new\n messages.", "Neue \n Nachrichten."),
        ("One.", "Eins."),
    ]
    assert pairs[0].target_language.region == "CH"
    assert pair_fields(pairs[0]) == {
        "id": "open",
        "state": "final",
        "note": "Menu item",
        "original": "app/main.ui",
    }
    assert pair_fields(pairs[1])["source_tags"] == "g:1 x:2 bpt:3 ept:3"
    assert pair_fields(pairs[2])["segment"] == "0"
    assert +skipped == {"untranslated": 3, "not to be translated": 2}


def test_segments_of_2_0(tmp_path):
    skipped = Counter()
    pairs = list(read_pairs(write(tmp_path / "a.xliff", NEW), skipped=skipped))
    assert [tuple(pair[:4]) for pair in pairs] == [
        ("First one.", "Un.", "eng_Latn", "fra_Latn"),
        ("Second .", "Deux .", "eng_Latn", "fra_Latn"),
        ("Four.", "Quatre.", "eng_Latn", "fra_Latn"),
    ]
    assert pair_fields(pairs[0]) == {
        "id": "u1",
        "segment": "s1",
        "state": "final",
        "note": "A note.",
        "source_tags": "pc:1",
    }
    assert +skipped == {"untranslated": 1, "not to be translated": 1}


@pytest.mark.parametrize("name", ["a.xlf", "a.mqxliff.gz", "a.sdlxliff"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("text", [OLD, NEW], ids=["1.2", "2.0"])
def test_the_same_file_with_scores(tmp_path, text, encoding, ends, name):
    text = text.replace("\n", ends).replace("UTF-8", encoding.removesuffix("-sig").upper())
    path = tmp_path / name
    plain = text.encode(encoding)
    source = write(tmp_path / uncompressed_name(name), text, encoding)
    found = scored(source)
    assert write_pairs(found, path) == 3
    written = list(read_pairs(path))
    assert written == found
    assert next(map(pair_fields, written)) == pair_fields(found[0])
    # Without the additions it is the file again, byte by byte.
    if not name.endswith(".gz"):
        content = path.read_bytes().decode(encoding)
        assert without_additions(content).encode(encoding) == plain


def without_additions(text):
    text = re.sub(r"\s*<alt-trans origin=\"interlingua\".*?</alt-trans>", "", text, flags=re.S)
    own = r"\s*<mtc:match xmlns:mtc=\"[^\"]*\" id=\"interlingua-.*?</mtc:match>"
    text = re.sub(
        rf"\s*<mtc:matches xmlns:mtc=\"[^\"]*\">({own})+</mtc:matches>", "", text, flags=re.S
    )
    text = re.sub(own, "", text, flags=re.S)
    return text.replace('<segment id="s2">', "<segment>")


def test_places_of_the_standards(tmp_path):
    path = write(tmp_path / "a.xlf", OLD)
    write_pairs(scored(path), path)
    root = ElementTree.parse(path).getroot()
    space = {"x": "urn:oasis:names:tc:xliff:document:1.2"}
    matches = root.findall(".//x:alt-trans", space)
    assert [match.get("match-quality") for match in matches] == ["50.0%"] * 3
    assert matches[2].get("mid") == "0"
    assert len(matches[1].findall("x:target/x:g", space)) == 1
    path = write(tmp_path / "b.xlf", NEW)
    write_pairs(scored(path), path)
    root = ElementTree.parse(path).getroot()
    space = {
        "x": "urn:oasis:names:tc:xliff:document:2.0",
        "m": "urn:oasis:names:tc:xliff:matches:2.0",
    }
    matches = root.findall(".//m:match", space)
    assert [match.get("matchQuality") for match in matches] == ["50.0", "50.0", None, "50.0"]
    assert [match.get("ref") for match in matches] == ["#s1", "#s2", "#s1", "#s1"]
    assert matches[1].findtext("x:target", None, space) == "Deux ."
    assert root.findall(".//x:unit", space)[0][0].tag.endswith("}matches")


def test_a_second_run_replaces_the_scores_of_the_first(tmp_path):
    path = write(tmp_path / "a.xlf", OLD)
    write_pairs(scored(path), path)
    once = path.read_bytes()
    write_pairs(scored(path), path)
    assert path.read_bytes() == once


@pytest.mark.parametrize("text", [OLD, NEW], ids=["1.2", "2.0"])
def test_a_broken_unit_costs_one_unit_and_stays_as_it_is(tmp_path, text):
    broken = text.replace("Open file</source>", "Open & file</source>")
    broken = broken.replace("First <pc", "First & <pc")
    path = write(tmp_path / "a.xlf", broken)
    bad = BadLines()
    pairs = list(read_pairs(path, bad=bad))
    assert len(pairs) == (1 if text is NEW else 2)
    assert bad.count == 1
    assert "a.xlf:" in bad.first[0]
    write_pairs([pair._replace(score=1.0) for pair in pairs], path)
    assert without_additions(path.read_text()) == broken
    assert [pair.score for pair in read_pairs(path, bad=BadLines())] == [1.0] * len(pairs)


def test_languages_are_declared_given_or_in_the_name(tmp_path):
    text = OLD.replace(' target-language="de-CH"', "")
    for name in ("messages.fr.xlf", "fr/app.xlf", "messages_fr.xlf"):
        (tmp_path / "fr").mkdir(exist_ok=True)
        found = next(read_pairs(write(tmp_path / name, text)))
        assert found.target_language == "fra_Latn"
    path = write(tmp_path / "app.xlf", text)
    assert next(read_pairs(path, target_language="it")).target_language == "ita_Latn"
    with pytest.raises(DataError, match="--target-language"):
        next(read_pairs(path))
    turned = next(read_pairs(write(path, OLD), source_language="de", target_language="en"))
    assert turned[:2] == ("Datei öffnen", "Open file")
    assert not list(read_pairs(path, source_language="it", target_language="en"))


TEXT = st.text(
    st.characters(
        codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"
    ),
    min_size=1,
).filter(str.strip)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(sides=st.lists(st.tuples(TEXT, TEXT), min_size=1))
def test_any_text_survives_in_a_new_file_and_in_its_copy(tmp_path, sides):
    path = tmp_path / "new.xlf"
    codes = ("deu_Latn", "eng_Latn")
    write_pairs([TextPair(*side, *codes, 0.5) for side in sides], path)
    pairs = list(read_pairs(path))
    assert pairs == [TextPair(a.strip(), b.strip(), *codes, 0.5) for a, b in sides]
    write_pairs([pair._replace(score=0.25) for pair in pairs], path)
    assert list(read_pairs(path)) == [pair._replace(score=0.25) for pair in pairs]


def test_pairs_of_two_files_are_refused(tmp_path):
    one = write(tmp_path / "a.xlf", OLD)
    other = write(tmp_path / "b.xlf", OLD)
    with pytest.raises(DataError, match="TMX"):
        write_pairs([*read_pairs(one), *read_pairs(other)], tmp_path / "c.xlf")
