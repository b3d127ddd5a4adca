"""Times of subtitles in alignment: how two files differ, distances, and links by both."""

from __future__ import annotations

import random

import numpy as np
import pytest

import interlingua
from interlingua.alignment.align import Aligner, read_links, read_spans
from interlingua.alignment.cue_times import alone_shares, fit_times, time_distances
from interlingua.corpus.formats.bitext import pair_fields, read_pairs
from interlingua.corpus.formats.localization.subtitle_pairs import cue_time
from interlingua.corpus.formats.localization.subtitles import read_cues
from tests.mining.words import embed, encode

FILM = 24 / 1.001


def spans_of(count):
    """Cues of different lengths and gaps."""
    draw = np.random.default_rng(0)
    starts = np.cumsum(draw.uniform(1.5, 6, count))
    return np.stack([starts, starts + draw.uniform(0.8, 1.4, count)], axis=1)


def one_to_one(count, wrong=0):
    """Links of cues of the same number, some of them wrong."""
    draw = random.Random(0)
    bad = draw.sample(range(count), wrong)
    return [((n,), (draw.randrange(count) if n in bad else n,)) for n in range(count)]


@pytest.mark.parametrize(
    ("rate", "offset"), [(1.0, 12.3), (25 / FILM, -4.0), (FILM / 25, 0.0), (1.013, 2.0)]
)
def test_offset_and_rate_are_found_beside_wrong_links(rate, offset):
    source = spans_of(200)
    target = rate * source + offset + np.random.default_rng(1).normal(0, 0.1, source.shape)
    found = fit_times(one_to_one(200, wrong=60), source, target)
    assert found.rate == pytest.approx(rate, abs=2e-3)
    assert np.abs(found.spans - target).max() < 0.6
    assert 0.65 < found.agreeing < 0.8


def test_a_cut_has_an_offset_before_and_one_after_it():
    source = spans_of(100)
    target = source + np.where(source < source[50, 0], 1.0, 41.0)
    found = fit_times(one_to_one(100), source, target)
    assert found.rate == 1.0
    difference = np.abs(found.spans - target).max(axis=1)
    assert (np.flatnonzero(~(difference < 0.1)) // 10).tolist() in ([], [4], [5], [4, 5], [5, 5])


def test_links_that_do_not_agree_have_no_times():
    source = spans_of(60)
    target = np.sort(np.random.default_rng(2).uniform(0, 300, (60, 2)))
    draw = np.random.default_rng(3).permutation(60)
    links = [((n,), (int(draw[n]),)) for n in range(60)]
    found = fit_times(links, source, target)
    assert found is None or np.isnan(found.spans[:, 0]).mean() > 0.8
    assert fit_times(one_to_one(4), source[:4], source[:4]) is None


def test_distances_and_shares_by_hand():
    source = np.array([[0.0, 2.0], [2.0, 4.0], [np.nan, np.nan]])
    target = np.array([[0.0, 4.0], [10.0, 11.0], [10.5, 12.0]])
    every = (slice(0, 3), slice(0, 3))
    single = time_distances(source, target, (1, 1), every)
    # 2 of 4 seconds are shared, and 0.2 s are no difference.
    assert single[:2] == pytest.approx(np.array([[0.45, 1.0, 1.0], [0.45, 1.0, 1.0]]))
    assert np.isnan(single[2]).all()
    assert time_distances(source, target, (2, 1), every)[1].tolist() == [0.0, 1.0, 1.0]
    assert alone_shares(source, target).tolist() == [0.0, 0.0, 0.0]
    assert alone_shares(target, source).tolist() == [0.0, 1.0, 1.0]
    assert alone_shares(source[:2], np.array([[1.0, 3.0], [2.0, 3.0]])).tolist() == [0.5, 0.5]
    assert alone_shares(source[:2], source[2:]).tolist() == [0.0, 0.0]


def subtitles(path, cues):
    """Write a SubRip file of texts with start and end in seconds."""
    blocks = [
        f"{number}\n{cue_time(round(1000 * start))} --> {cue_time(round(1000 * end))}\n{text}\n"
        for number, (text, start, end) in enumerate(cues, 1)
    ]
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


@pytest.fixture
def films(tmp_path):
    """The same word in two of three cues, of which some are missing in the target."""
    source = [
        (f"de{n} de{n + 1}" if n % 3 == 1 else "de999", 4.0 * n, 4.0 * n + 1.5) for n in range(40)
    ]
    missing = (0, 6, 15, 24, 30)
    target = [
        (text.replace("de", "en"), 1.04 * start + 30, 1.04 * end + 30)
        for n, (text, start, end) in enumerate(source)
        if n not in missing
    ]
    files = subtitles(tmp_path / "film.de.srt", source), subtitles(tmp_path / "film.en.srt", target)
    kept = [n for n in range(40) if n not in missing]
    return files, {((n,), (place,)) for place, n in enumerate(kept)}


def test_times_decide_between_cues_of_one_meaning(films, tmp_path):
    files, right = films
    texts = tmp_path / "texts.tsv"
    found = interlingua.align(embed, *files, texts=texts, output=tmp_path / "links")
    links = {link[:2] for link in read_links(tmp_path / "links") if link.source and link.target}
    assert links == right
    assert any("times of the target: 1.04" in line for line in found.report.lines())
    # By meaning alone nothing says which of the equal cues are missing.
    sides = [[cue.text for cue in read_cues(file)] for file in files]
    alone = {link[:2] for link in Aligner(encode).links(*sides) if link.source and link.target}
    assert alone != right


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".csv", ".xlsx", ".tmx"])
def test_linked_texts_have_the_times_of_both_sides(films, tmp_path, suffix):
    files, right = films
    texts = tmp_path / f"texts.de-en{suffix}"
    interlingua.align(embed, *files, texts=texts)
    pairs = list(read_pairs(texts))
    assert len(pairs) == len(right)
    first = {**pair_fields(pairs[0])}
    times = {name: first[name] for name in ("start", "end", "target_start", "target_end")}
    assert times == {
        "start": "00:00:04,000",
        "end": "00:00:05,500",
        "target_start": "00:00:34,160",
        "target_end": "00:00:35,720",
    }


def test_speakers_share_the_time_of_their_cue(tmp_path):
    path = subtitles(tmp_path / "a.srt", [("- abc\n- abcdef", 1.0, 4.0), ("xyz", 5.0, 6.0)])
    assert read_spans(path).tolist() == [[1.0, 2.0], [2.0, 4.0], [5.0, 6.0]]
