from __future__ import annotations

import random

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining import documents
from interlingua.mining.documents import (
    DocumentMatch,
    check_matches,
    collect_document_pairs,
    language_pattern,
    reader,
    without_language,
)
from interlingua.mining.texts import Line, build_side, read_text_lines
from tests.mining.invented import WORDS, embed, text
from tests.mining.unit_vectors import MARGINS
from tests.progress_records import Recorded

EQUAL = DocumentMatch(how="equal")


@pytest.mark.parametrize(
    ("url", "language", "bare"),
    [
        ("https://www.example.org/de/seite?lang=de", "deu_Latn", "example/org/seite"),
        ("http://example.org/en-US/seite", "eng_Latn", "example/org/seite"),
        ("https://de.example.org/seite", "deu", "example/org/seite"),
        ("https://example.org/seite_zh_CN.html", "zho_Hans", "example/org/seite/html"),
        ("https://example.org/german/index.html", "de", "example/org/index/html"),
        ("https://example.org/design/endend", "en", "example/org/design/endend"),
        ("https://example.org/?hl=fr&page=2", "fra_Latn", "example/org/page/2"),
        ("https://example.org/страница", "rus_Cyrl", "example/org/страница"),
    ],
)
def test_urls_without_their_language(url, language, bare):
    assert without_language(url, language_pattern(language)) == bare


def test_what_matches(tmp_path):
    assert DocumentMatch.parse("urls") == DocumentMatch(how="urls")
    (tmp_path / "m.tsv").write_text("a\tb\n")
    assert DocumentMatch.parse(str(tmp_path / "m.tsv")).path == tmp_path / "m.tsv"
    with pytest.raises(ConfigError, match="equal, urls"):
        DocumentMatch.parse("url")
    with pytest.raises(ConfigError, match="found 'ids'"):
        reader(["a.tsv"], "ids", EQUAL, language="de")


def test_the_reader_calls_documents_alike(tmp_path):
    (tmp_path / "a").write_text("http://a.org/de/1\teins\n")
    lines = list(reader([tmp_path / "a"], "documents", DocumentMatch(how="urls"), language="de")())
    assert lines == [Line("eins", "http://a.org/de/1#1", "a/org/1")]
    lines = list(reader([tmp_path / "a"], "documents", EQUAL, language="de")())
    assert lines[0].document == "http://a.org/de/1"


def test_documents_named_by_their_languages_alone_match(tmp_path):
    match = DocumentMatch(how="urls")
    sides = []
    for language in ("de", "en"):
        path = tmp_path / f"{language}.tsv"
        path.write_text(f"{language}\tone\n{language}\ttwo\n")
        read = reader([path], "documents", match, language=language)
        sides.append(build_side(tmp_path / language, read))
        assert len(sides[-1].documents) == 2
    check_matches(*sides, match)


def test_a_first_line_without_a_document_is_in_one_of_its_own(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("\tone\nd\ttwo\n")
    side = build_side(tmp_path / "side", lambda: read_text_lines([path], "documents"))
    assert len(set(side.documents.tolist())) == 2


def crawl(folder, seed=0):
    """Write nine documents. Two have a notice on one side only, all others on both."""
    draw = random.Random(seed)
    sides = {"de": [], "en": []}
    for document in range(9):
        for _ in range(draw.randint(1, 7)):
            numbers = [draw.randrange(WORDS) for _ in range(5)]
            for language in sides:
                own = numbers if draw.random() < 0.7 else [draw.randrange(WORDS) for _ in range(5)]
                if (language, document) not in (("de", 7), ("en", 8)):
                    sides[language].append(Line(text(own, language), "", f"d{document}"))
        for language in sides:
            sides[language].append(Line(text([1, 2, 3], language), "", f"d{document}"))
    return [
        build_side(folder / language, lambda lines=lines: lines)
        for language, lines in sides.items()
    ]


def found(x, y, match=EQUAL, *, k=2, margin="ratio", background=0, **options):
    """Return the result of ``collect_document_pairs`` by max retrieval."""
    vectors = embed(list(x.texts)), embed(list(y.texts))
    options |= {"k": k, "margin": margin, "background": background}
    return collect_document_pairs(x, y, *vectors, match, retrieval="max", **options)


def oracle(x, y, k, margin, background):
    """Compare document by document, similarity by similarity.

    The best score of each pair, by max retrieval.
    """
    vectors = [embed(list(side.texts)).astype(np.float64) for side in (x, y)]
    cosines = vectors[0] @ vectors[1].T
    rng = np.random.default_rng(0)
    samples = [
        set(rng.choice(size, min(background, size), replace=False).tolist())
        for size in cosines.shape
    ]
    best = {}
    for key in set(x.documents.tolist()) & set(y.documents.tolist()):
        own = [
            sorted(set(side.text_of_line[side.documents == np.uint64(key)].tolist()))
            for side in (x, y)
        ]

        def mean(values):
            return np.mean(sorted(values)[-k:])

        mean_x = {i: mean([cosines[i, j] for j in samples[1] | set(own[1])]) for i in own[0]}
        mean_y = {j: mean([cosines[i, j] for i in samples[0] | set(own[0])]) for j in own[1]}

        def score(i, j, mean_x=mean_x, mean_y=mean_y):
            return MARGINS[margin](cosines[i, j], (mean_x[i] + mean_y[j]) / 2)

        every = []
        for i in own[0]:
            near = sorted(own[1], key=lambda j: -cosines[i, j])[:k]
            every.append(max((score(i, j), i, j) for j in near))
        for j in own[1]:
            near = sorted(own[0], key=lambda i: -cosines[i, j])[:k]
            every.append(max((score(i, j), i, j) for i in near))
        taken = set()
        for value, i, j in sorted(every, key=lambda one: -one[0]):
            if not taken & {("x", i), ("y", j)}:
                taken |= {("x", i), ("y", j)}
                best[i, j] = max(value, best.get((i, j), -np.inf))
    return best


@pytest.mark.parametrize("group", [1, 8192])
@pytest.mark.parametrize("background", [0, 10, 1000])
@pytest.mark.parametrize("margin", MARGINS)
def test_pairs_within_documents_are_the_oracle(tmp_path, monkeypatch, margin, background, group):
    monkeypatch.setattr(documents, "_GROUP", group)
    x, y = crawl(tmp_path)
    told = Recorded()
    options = {"k": 3, "margin": margin, "background": background}
    pairs, note = found(x, y, progress=told, **options)
    expected = oracle(x, y, 3, margin, background)
    got = {(x, y): score for x, y, score in pairs[["x", "y", "score"]].tolist()}
    assert got == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert (np.diff(pairs["score"]) <= 0).all()
    cosines = (embed(list(x.texts))[pairs["x"]] * embed(list(y.texts))[pairs["y"]]).sum(axis=1)
    np.testing.assert_allclose(pairs["cosine"], cosines, atol=1e-6)
    assert told.counts[-1] == (9, 9)
    assert "9 of 9 matches" in note


def test_a_refused_pair_keeps_no_text_from_another(tmp_path):
    """Use a sentence with an untranslated copy on the other side, next to its translation."""
    copied, translation = (Line(one, "", "d") for one in ("a1 a2 a3", "b1 b2 b3 b4"))
    x = build_side(tmp_path / "x", lambda: [copied])
    y = build_side(tmp_path / "y", lambda: [copied, translation])
    assert found(x, y)[0][["x", "y"]].tolist() == [(0, 0)]
    pairs, _ = found(x, y, refuses=lambda xs, ys: (xs == 0) & (ys == 0))
    assert pairs[["x", "y"]].tolist() == [(0, 0), (0, 1)]


def test_a_file_of_matches(tmp_path):
    x, y = crawl(tmp_path)
    (tmp_path / "m.tsv").write_text("d0\td0\t0.9\nd1\td3\nnone\td1\n")
    match = DocumentMatch.parse(str(tmp_path / "m.tsv"))
    pairs, note = found(x, y, match)
    assert note.startswith("2 of 3 matches")

    def texts_of(side, document):
        key = documents.exact_keys([document])[0]
        return set(side.text_of_line[side.documents == key].tolist())

    matches = [(texts_of(x, a), texts_of(y, b)) for a, b in (("d0", "d0"), ("d1", "d3"))]
    assert len(pairs)
    for i, j in pairs[["x", "y"]].tolist():
        assert any(i in of_x and j in of_y for of_x, of_y in matches)
    for text_, message in (
        ("none\tnone\n", "no pair of documents"),
        ("none\n", "m.tsv:1: .*TAB"),
    ):
        (tmp_path / "m.tsv").write_text(text_)
        with pytest.raises(DataError, match=message):
            found(x, y, match)


def test_a_notice_in_all_documents_is_one_pair(tmp_path):
    x, y = crawl(tmp_path)
    notice = [
        list(side.texts).index(text([1, 2, 3], language))
        for side, language in ((x, "de"), (y, "en"))
    ]
    pairs, _ = found(x, y, k=3)
    assert int(((pairs["x"] == notice[0]) & (pairs["y"] == notice[1])).sum()) == 1


def test_documents_of_one_side_alone(tmp_path):
    x, y = (build_side(tmp_path / name, lambda name=name: [Line("de1", "", name)]) for name in "xy")
    with pytest.raises(DataError, match="no document name"):
        found(x, y)
