"""Cues of subtitles, with any lines between them."""

from __future__ import annotations

import pytest

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.localization.subtitles import Cue, read_cues
from interlingua.corpus.formats.monolingual import language_of, read_sentences
from interlingua.corpus.formats.sentence_table import read_column
from interlingua.errors import DataError

SRT = """\
1
00:00:01,200 --> 00:00:02,900
Hallo, <b>mein</b> Freund.

2
00:00:03,500 --> 00:00:05,000 X1:40 X2:600
- Wie geht es
dir?
- Gut.

3
00:00:06,000 --> 00:00:08,000

4
00:00:09,000 --> 00:00:10,000
Ruf an:
911

5
00:00:0x,000 --> 00:00:12,000
Diese Zeit ist beschädigt.

6
00:00:13,000 --> 00:00:14,000
Oben.

Unten.
"""
VTT = """\
WEBVTT - ein Titel
Kind: captions

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start
<v Roger>Tom &amp; <c.x>Anna</c></v>

NOTE keine Untertitel

01:00:03.000 --> 01:00:04.000
<00:00:03.000>Ein <00:00:03.500>Wort
"""


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_cues_of_subrip_with_tags_blank_lines_numbers_and_a_damaged_time(tmp_path):
    bad = BadLines()
    path = write(tmp_path / "a.srt", SRT)
    cues = read_cues(path, bad=bad)
    assert cues == [
        Cue(1200, 2900, "Hallo, mein Freund.", 2),
        Cue(3500, 5000, "- Wie geht es\ndir?\n- Gut.", 6),
        Cue(9000, 10000, "Ruf an:\n911", 15),
        Cue(13000, 14000, "Oben.\nUnten.", 24),
    ]
    assert cues[1].speeches == ("Wie geht es dir?", "Gut.")
    assert cues[3].speeches == ("Oben. Unten.",)
    assert bad.count == 1
    assert f"{path}:20:" in bad.first[0]


def test_cues_left_out_are_warned_of_if_the_caller_does_not_report_them(tmp_path, caplog):
    path = write(tmp_path / "a.srt", SRT)
    read_cues(path, bad=BadLines())
    assert caplog.messages == []
    read_cues(path)
    assert any(f"{path}:20:" in message for message in caplog.messages)
    caplog.clear()
    assert len(list(read_column(path))) == 5
    assert any(f"{path}:20:" in message for message in caplog.messages)


def test_a_file_whose_language_is_found_is_warned_of_once(tmp_path, caplog):
    path = write(tmp_path / "de.srt", SRT)
    assert language_of(path) == "deu_Latn"
    assert caplog.messages == []
    assert len(list(read_sentences(path))) == 5
    assert len([message for message in caplog.messages if f"{path}:20:" in message]) == 1


def test_cues_of_webvtt_without_notes_styles_and_identifiers(tmp_path):
    assert read_cues(write(tmp_path / "a.vtt", VTT)) == [
        Cue(1000, 2500, "Tom & Anna", 8),
        Cue(3603000, 3604000, "Ein Wort", 13),
    ]


def test_cues_of_sub_station_alpha(tmp_path):
    text = (
        "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,Notiz\n"
        "Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,{\\i1}Zwei{\\i0}\\NZeilen\n"
        "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Eins\n"
    )
    assert read_cues(write(tmp_path / "a.ass", text)) == [
        Cue(1000, 2000, "Eins", 3),
        Cue(3000, 4000, "Zwei\nZeilen", 2),
    ]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_marks_change_nothing(tmp_path, ends, encoding):
    plain = read_cues(write(tmp_path / "a.srt", SRT), bad=BadLines())
    other = write(tmp_path / "b.srt", SRT.replace("\n", ends), encoding)
    assert read_cues(other, bad=BadLines()) == plain


def test_a_named_character_set_is_taken(tmp_path):
    path = write(tmp_path / "a.srt", "1\n00:00:01,0 --> 00:00:02,0\nfährt\n", "cp1252")
    assert read_cues(path, encoding="cp1252")[0].text == "fährt"
    with pytest.raises(DataError, match="iconv") as error:
        read_cues(path)
    assert error.value.line == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.srt", b""),
        ("a.srt", b"no times"),
        ("a.srt", b"\0\0\0\0"),
        ("a.srt", b"1\n00:00:01,0 --> 00:00:02,0\na\0b\n"),
        ("a.vtt", b"WEBVTT\n"),
        ("a.ass", b"[Script Info]\n"),
        ("a.ass", b"\xff"),
        ("a.txt", b"text"),
    ],
)
def test_what_is_no_subtitle_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_cues(path)
    assert name in str(error.value)
    assert "\n" not in str(error.value)
