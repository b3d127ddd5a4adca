"""Scores that are written for a pair, and their places; see also ``test_xliff``."""

from __future__ import annotations

from interlingua.corpus.formats.localization.xliff_scores import (
    MatchValues,
    ScoredSegment,
    copy_with_scores,
    match_values,
)


def test_the_quality_is_the_probability_else_the_cosine_else_a_share():
    assert match_values(1.2, {"probability": 0.9, "cosine": 0.5}).quality == 90
    assert match_values(1.2, {"cosine": -0.5}).quality == 0
    assert match_values(1.2, {}).quality is None
    assert match_values(0.25, {}).quality == 25
    found = match_values(1.25, {"cosine": 0.5, "reasons": ["script", "length"]})
    assert found.note == "score 1.25; cosine 0.5; rejected script, length"


def test_a_unit_of_unusual_xml_stays_and_is_named(tmp_path, caplog):
    text = '<xliff version="1.2"><file><body><trans-unit id="1"><source>a</source></trans-unit>'
    text += "</body></file></xliff>"
    path = tmp_path / "a.xlf"
    path.write_text(text)
    segment = ScoredSegment("7", MatchValues(50.0, (("score", "0.5"),)))
    copy_with_scores(str(path), str(path), {1: [segment]}, entry="trans-unit")
    assert path.read_text() == text  # there is no target that could have a quality


def test_prefixes_and_spaces_of_the_file_are_kept(tmp_path):
    text = (
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2"><x:file><x:body>\n'
        "  <x:trans-unit id='1' >\n\t<x:source>a</x:source>\n\t<x:target\n>b &gt; c</x:target >\n"
        "  </x:trans-unit></x:body></x:file></x:xliff>"
    )
    path = tmp_path / "a.xlf"
    path.write_text(text)
    segment = ScoredSegment(None, MatchValues(50.0, (("score", "0.5"),)))
    copy_with_scores(str(path), str(path), {1: [segment]}, entry="trans-unit")
    added = (
        '\n\t<x:alt-trans origin="interlingua" match-quality="50.0%"><x:target>b &gt; c</x:target>'
        '<x:note from="interlingua">score 0.5</x:note></x:alt-trans>'
    )
    assert path.read_text() == text.replace("</x:target >", f"</x:target >{added}")
