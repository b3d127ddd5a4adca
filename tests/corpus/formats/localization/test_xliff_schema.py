"""XLIFF with scores keeps the content models of the OASIS schemas (1.2 strict, 2.0 with modules).

The rules below are those of the schemas that concern what is written. The outputs of these inputs
were valid by ``xliff-core-1.2-strict.xsd`` and ``xliff-core-2.0.xsd``, too.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import interlingua
from tests.mining.words import embed

ORDER = {
    # Names of children in their order, as regular expressions of "name " each.
    "1.2 trans-unit": r"source (seg-source )?(target )?((context-group|count-group|prop-group|note"
    r"|alt-trans) )*",
    "1.2 alt-trans": r"(source )?(target )+((context-group|prop-group|note) )*",
    "2.0 unit": r"(matches )*(notes )?(originalData )?((segment|ignorable) )+",
    "2.0 match": r"(metadata )?(originalData )?source target ",
    "2.0 metadata": r"(metaGroup )+",
    "2.0 metaGroup": r"(meta )+",
}
ATTRIBUTES = {
    "1.2 alt-trans": {"mid", "origin", "match-quality", "tool", "crc", "datatype", "extype"},
    "2.0 match": {"id", "ref", "origin", "matchQuality", "matchSuitability", "similarity", "type"},
    "2.0 meta": {"type"},
}
NEEDED = {"2.0 match": {"ref"}, "2.0 meta": {"type"}, "1.2 alt-trans": set()}
OLD = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a"'
    ' datatype="html" source-language="de" target-language="en"><body>{}</body></file></xliff>'
)
NEW = (
    '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="de" trgLang="en">'
    '<file id="f">{}</file></xliff>'
)
INPUTS = {
    "plain": OLD.format(
        '<trans-unit id="1"><source>de1 de2</source><target>en1 en2</target></trans-unit>'
    ),
    "notes": OLD.format(
        '<trans-unit id="1"><source>de1 <g id="1">de2</g></source><target>en1 <g id="1">en2</g>'
        '</target><note>hi</note><alt-trans match-quality="80%"><source>de1</source><target>en1'
        "</target></alt-trans></trans-unit>"
    ),
    "segments": OLD.format(
        '<trans-unit id="1"><source>de1. de2.</source><seg-source><mrk mtype="seg" mid="0">de1.'
        '</mrk> <mrk mtype="seg" mid="1">de2.</mrk></seg-source><target><mrk mtype="seg" mid="0">'
        'en1.</mrk> <mrk mtype="seg" mid="1">en2.</mrk></target><context-group purpose="location">'
        '<context context-type="sourcefile">a</context></context-group></trans-unit>'
    ),
    "new": NEW.format(
        '<unit id="u1"><notes><note>hi</note></notes><originalData><data id="d1">x</data>'
        '</originalData><segment id="s1"><source>de1 <ph id="1" dataRef="d1"/></source><target>en1'
        ' <ph id="1" dataRef="d1"/></target></segment><segment><source>de3 de4</source><target>en3'
        " en4</target></segment></unit>"
    ),
    "matches": NEW.format(
        '<unit id="1"><mtc:matches xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"><mtc:match'
        ' ref="#1"><source>de1</source><target>en1</target></mtc:match></mtc:matches>'
        '<segment id="1"><source>de1 de2</source><target>en1 en2</target></segment></unit>'
    ),
}


def faults(path):
    """Elements of a file that break a rule."""
    root = ElementTree.parse(path).getroot()
    version = root.get("version")
    found = []
    for element in root.iter():
        name = f"{version} {element.tag.rpartition('}')[2]}"
        children = "".join(f"{child.tag.rpartition('}')[2]} " for child in element)
        if name in ORDER and not re.fullmatch(ORDER[name], children):
            found.append((name, children))
        if name in ATTRIBUTES and not NEEDED[name] <= set(element.attrib) <= ATTRIBUTES[name]:
            found.append((name, sorted(element.attrib)))
        quality = element.get("matchQuality")
        if quality is not None and not 0 <= float(quality) <= 100:
            found.append((name, quality))
    ids = [one.get("id") for one in root.iter() if one.tag.endswith("matches:2.0}match")]
    named = [one for one in ids if one]
    if len(named) != len(set(named)) or any(re.search(r"\s", one) for one in named):
        found.append(("match", ids))
    return found


@pytest.mark.parametrize("name", INPUTS)
def test_a_file_with_scores_keeps_the_order_of_the_schema(tmp_path, name):
    path = tmp_path / "a.xlf"
    path.write_text(INPUTS[name], encoding="utf-8")
    assert faults(path) == []
    for _ in range(2):  # into itself, and its own proposals are replaced
        interlingua.score(embed, path, output=path, cosine=True, drop="none")
        assert faults(path) == []
    text = path.read_text(encoding="utf-8")
    assert text.count('origin="interlingua"') == {"segments": 2, "new": 2}.get(name, 1)


def test_a_new_file_keeps_the_order_of_the_schema(tmp_path):
    path = tmp_path / "a.de-en.tsv"
    path.write_text("de1 <b>\ten1 & en2\n", encoding="utf-8")
    interlingua.score(embed, path, output=tmp_path / "a.xlf", cosine=True, drop="none")
    assert faults(tmp_path / "a.xlf") == []
    assert "alt-trans" in (tmp_path / "a.xlf").read_text(encoding="utf-8")
