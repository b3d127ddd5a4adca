"""Subtitles as documents: cues joined to sentences."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents import read_document
from interlingua.corpus.documents.captions import join_cues
from interlingua.corpus.formats.localization.subtitles import Cue


def cues(*texts, gap=100):
    return [Cue(n * 2000, n * 2000 + 2000 - gap, text, n) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (("I told you", "that it rains.", "Yes."), ["I told you that it rains.", "Yes."]),
        (("Ich habe", "Brot gekauft.", "Gut."), ["Ich habe Brot gekauft.", "Gut."]),
        (("I think...", "...we go.", "No!"), ["I think we go.", "No!"]),
        (("Wait...", "What is it?", "Rain."), ["Wait...", "What is it?", "Rain."]),
        (("- Hello.\n- Hi!", "Good."), ["Hello.", "Hi!", "Good."]),
        (("One line\nand two.", "End."), ["One line and two.", "End."]),
        (
            ("[DOOR OPENS]", "He said", "nothing.", "I know."),
            ["[DOOR OPENS]", "He said nothing.", "I know."],
        ),
        (("♪ la la", "♪ lo lo", "Stop.", "Now."), ["♪ la la", "♪ lo lo", "Stop.", "Now."]),
        (("我昨天", "看见了他。", "是吗？"), ["我昨天看见了他。", "是吗？"]),
        (("我看见了他", "是吗", "好的"), ["我看见了他", "是吗", "好的"]),
        (("ฉันเห็นเขา", "จริงเหรอ"), ["ฉันเห็นเขา", "จริงเหรอ"]),
        (("Πού πας;", "Σπίτι."), ["Πού πας;", "Σπίτι."]),
        (("قال لي", "إنه قادم.", "متى؟"), ["قال لي إنه قادم.", "متى؟"]),
        ((), []),
    ],
)
def test_sentences(texts, joined):
    assert join_cues(cues(*texts)) == joined


def test_a_pause_ends_a_sentence():
    apart = [Cue(0, 1000, "I told you", 1), Cue(9000, 9500, "That is it.", 2)]
    assert join_cues(apart) == ["I told you", "That is it."]


def test_without_marks_nothing_is_joined_without_end():
    assert len(join_cues(cues(*["Word"] * 100, "End."))) > 12


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "cp1251"])
def test_files(tmp_path, charset):
    path = tmp_path / "a.srt"
    times = "00:00:0{0},000 --> 00:00:0{0},900"
    parts = ("<i>Летом наша большая библиотека</i>", "открыта до позднего вечера каждый день.")
    text = "".join(f"{n}\n{times.format(n)}\n{part}\n\n" for n, part in enumerate(parts, 1))
    path.write_bytes(text.encode(charset))
    document = read_document(path)
    assert document.units == [
        ("Летом наша большая библиотека открыта до позднего вечера каждый день.", "cue", 0)
    ]


def test_a_damaged_cue_is_reported(tmp_path):
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nOne.\n\n2\n00:x --> 00:00:03,000\nTwo.\n")
    document = read_document(path)
    assert document.units == [("One.", "cue", 0)]
    assert "1 cue" in document.notes[0]
