from __future__ import annotations

import io
import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from interlingua.alignment.align import (
    Aligner,
    DocumentPair,
    SentenceBlocks,
    align_sentences,
    join_sentences,
    link_line,
    read_document_sentences,
    read_links,
    with_blank_lines,
)
from interlingua.alignment.sentence_alignment import (
    AlignConfig,
    Link,
    LinkCounts,
    align_blocks,
)
from interlingua.errors import DataError
from interlingua.storage.arrays import unit_rows
from tests.corpus.documents.made import write_docx
from tests.mining.invented import write_lines
from tests.mining.words import encode
from tests.progress_records import Recorded


def documents(seed, n=80, alone=0):
    """Return a document, a translation with joins and omissions, and the right links."""
    draw = random.Random(seed)
    documents, links = ([], []), []
    shapes = [(1, 1), (2, 1), (1, 2), (1, 0), (0, 1)]
    for _ in range(n):
        shape = draw.choices(shapes, [8, 1, 1, alone, alone])[0]
        words = [[draw.randrange(10_000) for _ in range(draw.randint(3, 7))] for _ in range(2)]
        # only the first of two parts, or both: joined on one side, apart on the other
        words = words[: max(shape)]
        sides = []
        for document, code, size in zip(documents, ("de", "en"), shape, strict=True):
            parts = [" ".join(f"{code}{word}" for word in part) for part in words]
            if size < len(parts):
                parts = [" ".join(parts)] * size
            sides.append(tuple(range(len(document), len(document) + size)))
            document += parts
        links.append(Link(*sides, 0.0))
    return *documents, links


@pytest.mark.parametrize("seed", range(3))
def test_joined_and_missing_sentences_are_found(seed):
    source, target, gold = documents(seed)
    assert LinkCounts.of(Aligner(encode).align(source, target).links, gold).strict_scores.f1 > 0.98
    source, target, gold = documents(seed, alone=0.5)
    assert LinkCounts.of(Aligner(encode).align(source, target).links, gold).lax_scores.f1 > 0.93


def test_progress_ends_with_all_of_it():
    source, target, _ = documents(0, 20)
    told = Recorded()
    Aligner(encode).align(source, target, progress=told)
    assert told.done == told.total


def every_block(sentences, most, encode=encode):
    """Return a document with the vectors of all blocks."""
    side = SentenceBlocks(sentences, encode)
    for size in range(1, most + 1):
        side.embed(size, side.texts(size, np.ones(len(sentences), bool)))
    return side


def inexact(texts, **_):
    """Encode inexactly: translations differ, so that no link is certain."""
    noise = [np.random.default_rng(zlib.crc32(text.encode())).standard_normal(64) for text in texts]
    return unit_rows(encode(texts) + 0.05 * np.array(noise, np.float32))


def test_blocks_that_read_alike_are_embedded_once():
    seen = []

    def remembering(texts, **_):
        seen.extend(texts)
        return encode(texts)

    side = SentenceBlocks(["x1", " x2 ", "x1"], remembering)
    side.embed(1, side.texts(1, np.ones(3, bool)))
    side.embed(2, side.texts(2, np.array([True, False, True])))
    assert seen == ["x1", "x2", "x2 x1"]
    assert side.known.tolist() == [[True] * 3, [False, False, True]]
    assert np.array_equal(side.vectors[0], encode(["x1", "x2", "x1"]))
    assert np.array_equal(side.vectors[1, 2:], encode(["x2 x1"]))
    assert join_sentences(["a ", "b"], [0, 1]) == "a b"


def test_a_block_longer_than_the_document_is_not_there():
    assert every_block(["x1"], 3).known.tolist() == [[True], [False], [False]]


@pytest.mark.parametrize("seed", range(3))
def test_links_are_those_of_all_blocks_where_everything_is_in_doubt(seed):
    source, target, _ = documents(seed)
    expected = align_blocks(*(every_block(side, 3, inexact).vectors for side in (source, target)))
    sides = [SentenceBlocks(sentences, inexact) for sentences in (source, target)]
    config = AlignConfig(clear=0.0)
    found = align_sentences(*sides, config)
    assert [link[:2] for link in found.links] == [link[:2] for link in expected.links]
    assert all(side.known.sum() == 3 * len(side.sentences) - 3 for side in sides)


def test_where_one_to_one_is_clear_only_sentences_are_embedded():
    source = [f"de{number}" for number in range(200)]
    target = [f"en{number}" for number in range(200)]
    # One sentence is joined with the next on one side: only blocks near it are embedded.
    target[100:102] = ["en100 en101"]
    aligner = Aligner(encode)
    links = [link[:2] for link in aligner.align(source, target).links]
    assert ((100, 101), (100,)) in links
    assert len(links) == 199
    assert 399 < aligner.report.encoded.texts < 399 + 12


def test_blank_lines_are_left_alone_in_their_place():
    source, target = ["", "de1", "de2", "", "de3 de4"], ["en1", "", "en2", "en3", "en4", " "]
    links = [link[:2] for link in Aligner(encode).align(source, target).links]
    assert links[:4] == [((0,), ()), ((1,), (0,)), ((), (1,)), ((2,), (2,))]
    assert links[4:] == [((3,), ()), ((4,), (3, 4)), ((), (5,))]


def test_a_blank_line_within_a_link_goes_before_it():
    found = with_blank_lines([Link((0, 1), (0,), 0.5)], [[0, 2], [0]], (4, 1))
    assert found == (Link((1,), (), 0.0), Link((0, 2), (0,), 0.5), Link((3,), (), 0.0))


def test_an_empty_document_has_no_links():
    with pytest.raises(DataError, match="no sentence"):
        Aligner(encode).align(["de1"], ["", " "])


def written(folder, seed, n=30):
    source, target, gold = documents(seed, n)
    paths = [folder / f"{seed}.{code}" for code in ("de", "en", "gold")]
    write_lines(paths[0], source)
    write_lines(paths[1], target)
    paths[2].write_text("".join(map(link_line, gold)), encoding="utf-8")
    return [str(path) for path in paths]


def pairs_of(aligner, *documents, **options):
    return list(aligner.pairs(documents, stdout=io.StringIO(), **options))


def test_many_documents_in_one_run(tmp_path):
    named = [written(tmp_path, seed) for seed in (1, 2)]
    pairs = [
        DocumentPair(de, en, str(tmp_path / f"{i}.align"), gold)
        for i, (de, en, gold) in enumerate(named)
    ]
    aligner = Aligner(encode, source_language="de", target_language="eng_Latn")
    told = Recorded()
    texts = pairs_of(aligner, *pairs, progress=told)
    links = [read_links(tmp_path / f"{i}.align") for i in (0, 1)]
    assert (texts[0].source_language, texts[0].target_language) == ("deu_Latn", "eng_Latn")
    joining = [link for found in links for link in found if link.source and link.target]
    scores = [1 - link.cost for link in joining]
    assert [text.score for text in texts] == pytest.approx(scores, abs=1e-5)
    assert aligner.report.documents == 2
    assert aligner.report.gold.strict_scores.f1 > 0.9
    assert [line.split(":")[0] for line in aligner.report.gold_lines] == ["strict", "lax"]
    sizes = [sum(Path(path).stat().st_size for path in (de, en)) / 1000 for de, en, _ in named]
    assert ("document 1 of 2", round(sizes[0])) in {
        (at, round(done)) for at, done, _ in told.states
    }
    assert told.states[-1] == ("document 2 of 2", pytest.approx(sum(sizes)), sum(sizes))
    assert sum(aligner.report.shapes.values()) == sum(map(len, links))
    assert "2 document pairs" in str(aligner.report)


def test_without_an_output_links_are_printed(tmp_path):
    de, en, _ = written(tmp_path, 1)
    out = io.StringIO()
    aligner = Aligner(encode, AlignConfig(max_sentences=3))
    texts = list(aligner.pairs([DocumentPair(de, en)], stdout=out))
    assert out.getvalue().startswith("[0]:[0]:0.0")
    assert len(texts) <= len(out.getvalue().splitlines())
    assert aligner.report.gold_lines == []


def test_a_broken_document_stops_the_run_or_is_noted(tmp_path):
    de, en, _ = written(tmp_path, 1)
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    (tmp_path / "latin").write_bytes(b"\xe4\n")
    (tmp_path / "wrong.gold").write_text("[99]:[0]\n", encoding="utf-8")
    broken = [
        DocumentPair(str(tmp_path / "empty"), en),
        DocumentPair(de, str(tmp_path / "latin")),
        DocumentPair(str(tmp_path / "absent"), en),
        DocumentPair(de, en, None, str(tmp_path / "wrong.gold")),
    ]
    for pair in broken:
        with pytest.raises(DataError):
            pairs_of(Aligner(encode), pair)
    aligner = Aligner(encode)
    assert pairs_of(aligner, *broken, DocumentPair(de, en), lenient=True)
    assert aligner.report.documents == 1
    reasons = ["no text", "(byte 0xe4)", "file not found", "sentence 99"]
    assert all(reason in said for reason, said in zip(reasons, aligner.report.failed, strict=True))


def test_vectors_that_are_not_finite_are_refused_by_their_text():
    def broken(texts, **_):
        found = encode(texts)
        found[[row for row, text in enumerate(texts) if text == "de2"]] = np.inf
        return found

    with pytest.raises(DataError, match=r"NaN .*'de2'"):
        Aligner(broken).align(["de1", "de2"], ["en1", "en2"])


def test_blank_lines_are_counted_apart_from_sentences_left_alone(tmp_path):
    (tmp_path / "a").write_text("de1 de2\n\nde3 de4\n \n", encoding="utf-8")
    (tmp_path / "b").write_text("en1 en2\n\nen3 en4\n", encoding="utf-8")
    aligner = Aligner(encode)
    pairs_of(aligner, DocumentPair(str(tmp_path / "a"), str(tmp_path / "b")))
    assert aligner.report.shapes == {(1, 1): 2}
    assert aligner.report.blank == {"source": 2, "target": 1}
    assert "0 source and 0 target sentences without a link; 2 and 1 blank lines" in str(
        aligner.report
    )


def test_plain_text_is_split_and_its_sentences_written_beside_the_links(tmp_path):
    (tmp_path / "a.de.txt").write_text("Ab cd. Ef gh.\n\nIj kl.", encoding="utf-8")
    (tmp_path / "a.en.txt").write_text("Ab cd.\nEf gh. Ij kl.\n", encoding="utf-8")
    seen = []

    def letters(texts, *, language=None, report=None):
        seen.append(language)
        rows = [[text.count(letter) for letter in "AbcdEfghIjkl"] for text in texts]
        return unit_rows(np.array(rows, np.float32))

    pair = DocumentPair(*(str(tmp_path / name) for name in ("a.de.txt", "a.en.txt", "links")))
    texts = pairs_of(Aligner(letters, split=True), pair)
    sentences = ["Ab cd.", "Ef gh.", "Ij kl."]
    assert [text.source for text in texts] == [text.target for text in texts] == sentences
    assert (texts[0].source_language, texts[0].target_language) == ("deu_Latn", "eng_Latn")
    assert set(seen) == {"deu_Latn", "eng_Latn"}
    for side in ("source", "target"):
        assert (tmp_path / f"links.{side}.txt").read_text().splitlines() == sentences


@pytest.mark.parametrize("name", ["a.de.html", "a.de.docx"])
def test_documents_of_other_kinds_are_split_unit_by_unit(tmp_path, name):
    path = tmp_path / name
    if name.endswith("docx"):
        write_docx(path, [("heading", 1, "Ab cd"), ("paragraph", 0, "Ef gh. Ij kl.")])
    else:
        path.write_text("<h1>Ab cd</h1><p>Ef gh. Ij kl.</p>")
    assert read_document_sentences(path, split_as="deu") == ["Ab cd", "Ef gh.", "Ij kl."]
    with pytest.raises(DataError, match="--split"):
        read_document_sentences(path)
