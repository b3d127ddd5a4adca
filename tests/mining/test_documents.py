from __future__ import annotations

import random

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining import documents
from interlingua.mining.documents import (
    DocumentMatch,
    check_matches,
    document_pairs,
    language_pattern,
    reader,
    without_language,
)
from interlingua.mining.texts import Line, build_side, read_lines
from tests.mining.invented import WORDS, embed, text

FUNCTIONS = {
    "ratio": lambda a, b: a / b,
    "distance": lambda a, b: a - b,
    "absolute": lambda a, b: a,
}


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
    with pytest.raises(ConfigError, match="equal or urls"):
        DocumentMatch.parse("url")
    with pytest.raises(ConfigError, match="layout is 'ids'"):
        reader(["a.tsv"], "ids", DocumentMatch(how="equal"), language="de")


def test_the_reader_calls_documents_alike(tmp_path):
    (tmp_path / "a").write_text("http://a.org/de/1\teins\n")
    lines = list(reader([tmp_path / "a"], "documents", DocumentMatch(how="urls"), language="de")())
    assert lines == [Line("eins", "http://a.org/de/1#1", "a/org/1")]
    lines = list(reader([tmp_path / "a"], "documents", DocumentMatch(how="equal"), language="de")())
    assert lines[0].document == "http://a.org/de/1"


def test_documents_named_by_their_languages_alone_match(tmp_path):
    match = DocumentMatch(how="urls")
    sides = []
    for language in ("de", "en"):
        path = tmp_path / f"{language}.tsv"
        path.write_text(f"{language}\tone\n{language}\ttwo\n")
        read = reader([path], "documents", match, language=language)
        sides.append(build_side(tmp_path / language, read, what=""))
        assert len(sides[-1].documents) == 2
    check_matches(*sides, match)


def test_a_first_line_without_a_document_is_in_one_of_its_own(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("\tone\nd\ttwo\n")
    side = build_side(tmp_path / "side", lambda: read_lines([path], "documents"), what="")
    assert len(set(side.documents.tolist())) == 2


def crawl(folder, seed=0):
    """Nine documents, of which two hold a notice alone on one side; it stands in all others too."""
    draw = random.Random(seed)
    sides = {"de": [], "en": []}
    for document in range(9):
        for _ in range(draw.randint(1, 7)):
            numbers = [draw.randrange(WORDS) for _ in range(5)]
            for language in sides:
                own = numbers if draw.random() < 0.7 else [draw.randrange(WORDS) for _ in range(5)]
                if not (document == 7 and language == "de") and not (
                    document > 7 and language == "en"
                ):
                    sides[language].append(Line(text(own, language), "", f"d{document}"))
        for language in sides:
            sides[language].append(Line(text([1, 2, 3], language), "", f"d{document}"))
    return [
        build_side(folder / language, lambda lines=lines: lines, what="")
        for language, lines in sides.items()
    ]


def oracle(x, y, k, margin, background):
    """Document by document, similarity by similarity.

    The best score of each pair, by max retrieval.
    """
    vectors = [embed(list(side.texts)).astype(np.float64) for side in (x, y)]
    cosines = vectors[0] @ vectors[1].T
    rng = np.random.default_rng(0)
    samples = [
        set(rng.choice(size, min(background, size), replace=False).tolist())
        for size in cosines.shape
    ]
    found = {}
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
            return FUNCTIONS[margin](cosines[i, j], (mean_x[i] + mean_y[j]) / 2)

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
                found[i, j] = max(value, found.get((i, j), -np.inf))
    return found


@pytest.mark.parametrize("group", [1, 8192])
@pytest.mark.parametrize("background", [0, 10, 1000])
@pytest.mark.parametrize("margin", FUNCTIONS)
def test_pairs_within_documents_are_the_oracle(tmp_path, monkeypatch, margin, background, group):
    monkeypatch.setattr(documents, "GROUP", group)
    x, y = crawl(tmp_path)
    told = []
    pairs, note = document_pairs(
        x,
        y,
        embed(list(x.texts)),
        embed(list(y.texts)),
        DocumentMatch(how="equal"),
        k=3,
        margin=margin,
        retrieval="max",
        background=background,
        progress=lambda *at: told.append(at),
    )
    expected = oracle(x, y, 3, margin, background)
    got = {
        (i, j): score
        for i, j, score in zip(
            pairs["x"].tolist(), pairs["y"].tolist(), pairs["score"], strict=True
        )
    }
    assert set(got) == set(expected)
    for pair, score in got.items():
        assert score == pytest.approx(expected[pair], rel=1e-5, abs=1e-6)
    assert (np.diff(pairs["score"]) <= 0).all()
    cosines = (embed(list(x.texts))[pairs["x"]] * embed(list(y.texts))[pairs["y"]]).sum(axis=1)
    np.testing.assert_allclose(pairs["cosine"], cosines, atol=1e-6)
    assert told[-1] == (9, 9)
    assert "9 of 9 matches" in note


def test_a_refused_pair_keeps_no_text_from_another(tmp_path):
    """A sentence that stands on the other side untranslated as well, next to its translation."""
    sides = ((["a1 a2 a3"],), (["a1 a2 a3", "b1 b2 b3 b4"],))
    x, y = (
        build_side(
            tmp_path / name, lambda lines=lines: [Line(one, "", "d") for one in lines], what=""
        )
        for name, (lines,) in zip("xy", sides, strict=True)
    )
    how = {"k": 2, "margin": "ratio", "retrieval": "max", "background": 0}
    both = x, y, embed(list(x.texts)), embed(list(y.texts)), DocumentMatch(how="equal")
    assert document_pairs(*both, **how)[0][["x", "y"]].tolist() == [(0, 0)]
    pairs, _ = document_pairs(*both, **how, refuses=lambda xs, ys: (xs == 0) & (ys == 0))
    assert pairs[["x", "y"]].tolist() == [(0, 0), (0, 1)]


def test_a_file_of_matches(tmp_path):
    x, y = crawl(tmp_path)
    (tmp_path / "m.tsv").write_text("d0\td0\t0.9\nd1\td3\nnone\td1\n")
    options = {"k": 2, "margin": "ratio", "retrieval": "max", "background": 0}
    vectors = embed(list(x.texts)), embed(list(y.texts))
    pairs, note = document_pairs(
        x, y, *vectors, DocumentMatch.parse(str(tmp_path / "m.tsv")), **options
    )
    assert note.startswith("2 of 3 matches")
    of = [{name: set() for name in ("d0", "d1", "d3")} for _ in range(2)]
    for side, names, place in ((x, ("d0", "d1"), 0), (y, ("d0", "d3"), 1)):
        for name in names:
            key = documents.exact_keys([name])[0]
            of[place][name] = set(side.text_of_line[side.documents == key].tolist())
    assert len(pairs)
    for i, j in zip(pairs["x"].tolist(), pairs["y"].tolist(), strict=True):
        assert (i in of[0]["d0"] and j in of[1]["d0"]) or (i in of[0]["d1"] and j in of[1]["d3"])
    (tmp_path / "m.tsv").write_text("none\tnone\n")
    with pytest.raises(DataError, match="no pair of documents"):
        document_pairs(x, y, *vectors, DocumentMatch.parse(str(tmp_path / "m.tsv")), **options)
    (tmp_path / "m.tsv").write_text("none\n")
    with pytest.raises(DataError, match=r"m.tsv:1: .*TAB target"):
        document_pairs(x, y, *vectors, DocumentMatch.parse(str(tmp_path / "m.tsv")), **options)


def test_a_notice_in_all_documents_is_one_pair(tmp_path):
    x, y = crawl(tmp_path)
    notice = [
        list(side.texts).index(text([1, 2, 3], language))
        for side, language in ((x, "de"), (y, "en"))
    ]
    pairs, _ = document_pairs(
        x,
        y,
        embed(list(x.texts)),
        embed(list(y.texts)),
        DocumentMatch(how="equal"),
        k=3,
        margin="ratio",
        retrieval="max",
        background=0,
    )
    assert int(((pairs["x"] == notice[0]) & (pairs["y"] == notice[1])).sum()) == 1


def test_documents_of_one_side_alone(tmp_path):
    x, y = (
        build_side(tmp_path / name, lambda name=name: [Line("de1", "", name)], what="")
        for name in "xy"
    )
    with pytest.raises(DataError, match="no document of"):
        document_pairs(
            x,
            y,
            embed(["de1"]),
            embed(["de1"]),
            DocumentMatch(how="equal"),
            k=1,
            margin="ratio",
            retrieval="max",
            background=0,
        )
