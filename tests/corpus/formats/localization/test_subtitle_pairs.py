"""Cues of two subtitle files, paired by time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.corpus.formats.bitext import guess_format, pair_fields, read_pairs
from interlingua.corpus.formats.localization.subtitle_pairs import cue_time, grouped_cues
from interlingua.corpus.formats.localization.subtitles import Cue
from interlingua.corpus.formats.sentence_table import read_column
from interlingua.errors import ConfigError, DataError

GERMAN = [
    (1200, 2900, "Hallo."),
    (3500, 4100, "- Wie geht es dir?"),
    (4200, 5000, "- Gut, danke."),
    (6000, 8000, "<i>Der Zug fährt\num sieben ab.</i>"),
    (9000, 9900, "Er sah"),
    (9950, 11000, "mich an."),
    (50000, 51000, "Ende."),
]
ENGLISH = [
    (1000, 3000, "Hello."),
    (3500, 5000, "- How are you?\n- Fine, thanks."),
    (6000, 8000, "The train leaves at seven."),
    (9000, 11000, "He looked at me."),
    (20000, 21000, "(music)"),
]


def write(path, cues):
    blocks = (
        f"{number}\n{cue_time(start)} --> {cue_time(end)}\n{text}\n"
        for number, (start, end, text) in enumerate(cues, 1)
    )
    path.write_text("\n".join(blocks))
    return path


@pytest.fixture
def film(tmp_path):
    write(tmp_path / "film.de.srt", GERMAN)
    write(tmp_path / "film.en.srt", ENGLISH)
    return tmp_path / "film"


def test_cues_of_one_time_are_pairs_with_speakers_and_groups(film):
    skipped = Counter()
    pairs = list(read_pairs(film, skipped=skipped, source_language="de", target_language="en"))
    assert [tuple(pair[:2]) for pair in pairs] == [
        ("Hallo.", "Hello."),
        ("Wie geht es dir?", "How are you?"),
        ("Gut, danke.", "Fine, thanks."),
        ("Der Zug fährt um sieben ab.", "The train leaves at seven."),
        ("Er sah mich an.", "He looked at me."),
    ]
    assert pairs[0][2:4] == ("deu_Latn", "eng_Latn")
    assert pair_fields(pairs[0]) == {"start": "00:00:01,000", "end": "00:00:03,000"}
    assert +skipped == {"cues without a cue at the same time": 2}


def test_names_of_two_files(film):
    folder = film.parent
    both = f"{folder}/film.de.srt,{folder}/film.en.srt"
    for name in (film, f"{film}.de.srt", both, (f"{film}.de.srt", f"{film}.en.srt")):
        found = [sorted(pair[:2]) for pair in read_pairs(name)]
        assert found[0] == ["Hallo.", "Hello."]
        if isinstance(name, str):
            assert guess_format(name) == "subtitles"
    write(folder / "film.fr.srt", GERMAN)
    assert next(read_pairs(f"{film}.fr.srt"))[2:4] == ("eng_Latn", "fra_Latn")
    with pytest.raises(DataError, match="--target-language"):
        next(read_pairs(film))
    (folder / "alone.de.srt").write_text((folder / "film.de.srt").read_text())
    with pytest.raises(DataError, match="a,b"):
        next(read_pairs(folder / "alone.de.srt"))


def test_a_subtitle_file_is_a_text_of_one_language(film):
    assert list(read_column(f"{film}.en.srt"))[:3] == ["Hello.", "How are you?", "Fine, thanks."]


def test_subtitles_are_read_only(tmp_path):
    from interlingua.mining.filter import output_format

    with pytest.raises(ConfigError, match=r"\.xlsx"):
        output_format(tmp_path / "a.srt", None)


TIMES = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES)
def test_every_cue_is_in_one_group_and_linked_cues_are_together(one, other):
    sides = [
        [Cue(start, start + length, "x", 1) for start, length in sorted(side)]
        for side in (one, other)
    ]
    groups = list(grouped_cues(*sides))
    assert sorted(cue for group in groups for cue in group[0]) == sorted(sides[0])
    assert sorted(cue for group in groups for cue in group[1]) == sorted(sides[1])
    for a in sides[0]:
        for b in sides[1]:
            shared = min(a.end, b.end) - max(a.start, b.start)
            if shared > 0 and 2 * shared >= min(a.end - a.start, b.end - b.start):
                assert any(a in group[0] and b in group[1] for group in groups)
