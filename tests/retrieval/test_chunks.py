"""Long passages are cut at sentence ends, found by their place, and replaced as a whole."""

from __future__ import annotations

import json

import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError
from interlingua.retrieval.chunks import (
    DEFAULT_CHUNKS,
    ChunkSettings,
    check_chunks,
    chunked,
    sentence_spans,
)
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import (
    Searcher,
    add_to_index,
    build_index,
    delete_from_index,
    load_index_model,
)
from tests.encoder.conftest import tiny_vocabulary


def count(texts, language):
    """Count a token for each word."""
    return [len(text.split()) for text in texts]


def sentences(number, words=6):
    return [" ".join([f"S{n}", *(f"w{n}" for _ in range(words - 1))]) + "." for n in range(number)]


def cut(text, tokens, overlap=0, most=1000, **fields):
    passage = Passage("d", text, **fields)
    return list(chunked([passage], ChunkSettings(tokens, overlap), count, most))


def test_chunks_end_with_sentences_and_know_their_place():
    text = "\n ".join(sentences(40))
    found = cut(text, 30)
    assert [one.id for one in found] == [f"d#{n}" for n in range(1, 9)]
    for one in found:
        assert one.document == "d"
        assert text[one.offset :].startswith(one.text)
        assert one.text.startswith("S")
        assert one.text.endswith(".")
        assert len(one.text.split()) == 30
    assert " ".join(one.text for one in found).split() == text.split()


@pytest.mark.parametrize(("tokens", "overlap"), [(30, 12), (30, 15), (31, 7), (16, 8), (100, 5)])
def test_overlapping_chunks_miss_nothing_and_stay_small(tokens, overlap):
    text = " ".join(sentences(97))
    found = cut(text, tokens, overlap)
    stop = 0
    for one in found:
        assert one.offset <= stop + 1
        assert len(text[one.offset : stop].split()) <= overlap
        assert one.offset + len(one.text) > stop
        stop = one.offset + len(one.text)
        assert len(one.text.split()) <= tokens
    assert stop == len(text)


def test_the_last_chunk_is_no_rest():
    sizes = [len(one.text.split()) for one in cut(" ".join(sentences(11)), 60)]
    assert sizes == [36, 30]


@pytest.mark.parametrize("text", ["short text.", "x" * 300, ""])
def test_short_passages_stay_as_they_are(text):
    assert cut(text, 16) == [Passage("d", text, document="d")]


def test_a_tokens_limit_of_0_cuts_nothing():
    assert len(cut(" ".join(sentences(100)), 0)) == 1


@pytest.mark.parametrize("text", ["w " * 5000, "w\n" * 5000, "字" * 5000])
def test_a_text_without_sentences_is_cut_all_the_same(text):
    per_character = lambda texts, _: [len(text) for text in texts]  # noqa: E731
    passage = Passage("d", text)
    found = list(chunked([passage], ChunkSettings(100, 0), per_character, 1000))
    assert all(len(one.text) <= 100 for one in found)
    assert "".join(one.text for one in found).split() == "".join(text).split() or (
        "".join("".join(one.text.split()) for one in found) == "".join(text.split())
    )


@pytest.mark.parametrize("cluster", ["e\u0301", "กี่", "👩\u200d👩", "☺\ufe0f", "👍🏽", "เก", "น้ำ"])
def test_a_long_word_is_not_cut_inside_a_character_with_its_marks(cluster):
    def count_characters(texts, language):
        return [len(text) for text in texts]

    passage = Passage("d", "x" + 100 * cluster)
    found = chunked([passage], ChunkSettings(16, 0), count_characters, 1000)
    texts = [chunk.text for chunk in found]
    assert "".join(texts) == passage.text
    assert all(text.removeprefix("x").replace(cluster, "") == "" for text in texts)


def test_title_and_headings_take_room():
    text = " ".join(sentences(40))
    plain = cut(text, 60, most=60)
    titled = cut(text, 60, most=60, title="a b c d e f g h i j", heading="k l")
    assert max(len(one.text.split()) for one in plain) == 60
    assert max(len(one.embedded_text.split()) for one in titled) <= 60


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("One. Two!\n\nThree  four. ", "eng_Latn"),
        ("東京は首都です。大阪は\n大きい。", "jpn_Jpan"),
        ("\u00a0A b.\u3000C d. \u2028E", ""),
        ("... ?! .", ""),
        ("", ""),
    ],
)
def test_spans_cover_all_but_white_space(text, language):
    spans = sentence_spans(text, language)
    covered = "".join(text[start:stop] for start, stop in spans)
    assert "".join(covered.split()) == "".join(text.split())


@pytest.mark.parametrize("settings", [(15, 0), (-1, 0), (32, 17), (32, -1)])
def test_sizes_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match="--chunk-"):
        check_chunks(ChunkSettings(*settings))


def test_the_defaults_are_valid():
    check_chunks(DEFAULT_CHUNKS)
    check_chunks(ChunkSettings(0, 0))


# In an index.


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    vocabulary = tiny_vocabulary(frame=True)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    folder = tmp_path_factory.mktemp("model") / "tiny"
    Encoder.from_scratch(config, vocabulary).save(folder)
    return str(folder)


@pytest.fixture
def markdown(tmp_path):
    path = tmp_path / "guide.eng_Latn.md"
    parts = [f"## Part {part}\n\n{' '.join(sentences(30))}\n\n" for part in range(3)]
    path.write_text("# Guide\n\n" + "".join(parts))
    return path


@pytest.fixture
def built(model, markdown, tmp_path):
    pytest.importorskip("lancedb")
    chunks = ChunkSettings(64, 16)
    build_index(model, [markdown], tmp_path / "index", chunks=chunks)
    return tmp_path / "index"


def stored(folder):
    return list(PassageIndex(folder).passages())


def test_a_hit_names_document_offset_and_heading(built, markdown):
    searcher = Searcher(PassageIndex(built), load_index_model(PassageIndex(built)))
    wanted = next(one for one in stored(built) if one.heading == "Part 1")
    hit = searcher.search(wanted.embedded_text, top=1).hits[0]
    assert hit.document == markdown.name
    assert hit.title == "Guide"
    assert markdown.read_text()[hit.offset :].startswith(hit.text)
    assert searcher.index.nearest(searcher.model.embed_question("x"), 1, where="heading = 'Part 2'")


def test_a_document_is_replaced_and_deleted_as_a_whole(built, markdown):
    before = len(stored(built))
    assert before > 6
    markdown.write_text("# Guide\n\nOne sentence.\n")
    added = add_to_index(built, [markdown])
    assert (added.added + added.replaced, added.deleted) == (1, before - added.replaced)
    assert [one.text for one in stored(built)] == ["One sentence."]
    assert delete_from_index(built, [markdown.name]) == 1


@pytest.mark.parametrize("order", [("long", "short"), ("short", "long"), ("long", "longer")])
def test_a_record_leaves_no_chunk_of_an_earlier_state(built, tmp_path, order, caplog):
    lengths = {"short": 1, "long": 60, "longer": 90}
    counts = []
    for name in order:
        file = tmp_path / "records.jsonl"
        record = {"id": "r1", "text": " ".join(sentences(lengths[name])), "year": 2024}
        file.write_text(json.dumps(record) + "\n")
        add_to_index(built, [file])
        mine = [one for one in stored(built) if one.document == "r1"]
        counts.append(len(mine))
        assert all(json.loads(one.metadata) == {"year": 2024} for one in mine)
        assert " ".join(record["text"].split()[-3:]) in " ".join(one.text for one in mine)
    assert len({*counts}) == 2
    assert delete_from_index(built, ["r1"]) == counts[-1]
    assert not [one for one in stored(built) if one.document == "r1"]
    assert not caplog.records
    delete_from_index(built, ["r1"])
    assert caplog.records


def test_another_size_needs_another_index(built, model, markdown):
    with pytest.raises(ConfigError, match="chunk tokens"):
        build_index(model, [markdown], built)


def test_a_text_file_is_a_document_if_asked(model, tmp_path):
    pytest.importorskip("lancedb")
    file = tmp_path / "book.eng_Latn.txt"
    file.write_text("\n".join(sentences(60)))
    build_index(model, [file], tmp_path / "lines")
    build_index(model, [file], tmp_path / "whole", documents=True)
    assert len(stored(tmp_path / "lines")) == 60
    whole = stored(tmp_path / "whole")
    assert 1 < len(whole) < 20
    assert {one.document for one in whole} == {file.name}


def test_the_fact_in_sentence_400_is_first(tmp_path):
    pytest.importorskip("lancedb")
    pytest.importorskip("interlingua_mini")
    fact = "Marie Okafor hid the silver key beneath the lighthouse stairs."
    things = "bridge garden letter harvest map market clock library".split()  # noqa: SIM905
    lines = [f"The {things[n % 8]} was repaired in the {n}th week of winter." for n in range(600)]
    lines[399] = fact
    file = tmp_path / "chronicle.eng_Latn.txt"
    file.write_text(" ".join(lines))
    build_index("mini", [file], tmp_path / "index", documents=True)
    index = PassageIndex(tmp_path / "index")
    hits = Searcher(index, load_index_model(index)).search("Who hid the silver key?", top=3).hits
    assert fact in hits[0].text
