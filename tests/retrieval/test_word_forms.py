"""Words of all scripts are found in other forms than they are written, see ``word_probes.tsv``."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex
from interlingua.retrieval.word_forms import word_forms

PROBES = Path(__file__).with_name("word_probes.tsv")
LEAST_PROBES = 25


def read_probes():
    """Read language, phenomenon, question and passage of each line."""
    lines = PROBES.read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t") for line in lines]


def index_of(passages, folder):
    """Build an index of these passages, all with the same vector."""
    pytest.importorskip("lancedb")
    index = PassageIndex.create(folder, IndexSettings(model="m", digest="d", dim=2))
    index.add(passages, lambda block: np.tile(np.float32([1, 0]), (len(block), 1)))
    index.finish()
    return index


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    probes = read_probes()
    rows = [Passage(row[1], row[3], "", row[0]) for row in probes]
    distinct = [row._replace(id=f"{row.language} {row.id}") for row in rows]
    return index_of(distinct, tmp_path_factory.mktemp("probes") / "index")


def test_there_are_enough_probes_of_many_languages():
    probes = read_probes()
    assert len(probes) >= LEAST_PROBES
    assert len({language for language, *_ in probes}) >= 15


@pytest.mark.parametrize("probe", read_probes(), ids=lambda probe: f"{probe[0]} {probe[1]}")
def test_a_probe_finds_its_passage_first(probed, probe):
    language, phenomenon, question, _ = probe
    hits = probed.matching(question, 3)
    assert [hit.id for hit in hits][:1] == [f"{language} {phenomenon}"]


@pytest.mark.parametrize(
    "text",
    [
        "星期天图书馆不开放。",
        "标题：内容,“引号”……（括号）",
        "日本語の文章です。カメラ・レンズ、ジョン・スミス!",
        "東京は2024年に3.5%増えました。",
    ],
)
def test_chinese_and_japanese_are_unchanged(text):
    assert word_forms(text) == text


@pytest.mark.parametrize(
    "text", ["The library has 3.14 or 1,000 books at 10:30.", "Größe, naïve, Łódź", "ห้องสมุดปิด น้ำ"]
)
def test_plain_words_are_unchanged(text):
    assert word_forms(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l'école d’art", "l école d art"),
        ("James's boys' book", "James boys' book"),
        ("request_timeout at www.example.org", "request timeout at www example org"),
        ("İzmir'de ılık", "izmir de ilik"),
        ("도서관은 물을", "도서 서관 관은 물을 물"),
        ("المدرسة والمدرسة الله", "مدرسه والمدرسه مدرسه الله"),
        ("הספרייה", "הספרייה ספרייה"),
        ("צה״ל", "צהל"),
        ("ΟΔΟΣ οδός", "οδοσ οδοσ"),
        ("п’ять ещё", "пять еще"),
        ("हिन्दी २०२४", "हिन्दी 2024"),
    ],
)
def test_forms_by_hand(text, expected):
    assert word_forms(text) == expected


@pytest.mark.parametrize("probe", read_probes(), ids=lambda probe: f"{probe[0]} {probe[1]}")
def test_a_decomposed_passage_has_the_same_forms(probe):
    composed, decomposed = (unicodedata.normalize(form, probe[3]) for form in ("NFC", "NFD"))
    assert word_forms(decomposed) == word_forms(composed)


def test_words_of_a_title_are_found(tmp_path):
    index = index_of(
        [Passage("a", "Opening hours", "Bibliothèque"), Passage("b", "Opening hours")],
        tmp_path / "index",
    )
    assert [hit.id for hit in index.matching("bibliothèque", 2)] == ["a"]
