from __future__ import annotations

import gzip
import json

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.retrieval import (
    answer_sentence_sets,
    beir_sets,
    miracl_sets,
    mr_tydi_sets,
    question_sets,
)
from tests.evaluation.files import json_lines, write


def test_questions_and_passages_by_line(tmp_path):
    write(tmp_path / "sw.dev.questions.tsv", "q1\t1\tNani?\tyeye\nq2\t0\tWapi?\t\n")
    write(tmp_path / "sw.dev.passages.txt", "a b\nc\n")
    write(tmp_path / "sw.train.questions.tsv", "q1\t0\tx\t\n")
    write(tmp_path / "en.questions.tsv", "q1\t0\tWho?\tme\n")
    assert list(question_sets(tmp_path, "dev")) == ["sw"]
    assert list(question_sets(tmp_path)) == ["en"]
    found = question_sets(tmp_path, "dev")["sw"]()
    assert found.queries == {"q1": "Nani?", "q2": "Wapi?"}
    assert found.qrels == {"q1": {"1": 1}, "q2": {"0": 1}}
    assert list(found.passages()) == list(found.passages()) == [("0", "", "a b"), ("1", "", "c")]


def test_the_sentence_that_holds_the_answer(tmp_path):
    context = "One two. Three four. Five."
    paragraph = {
        "context": context,
        "sentences": ["One two.", "Three four.", "Five."],
        "sentence_breaks": [[0, 8], [9, 20], [21, 26]],
        "qas": [
            {
                "id": name,
                "question": f"{name}?",
                "answers": [{"answer_start": context.index(answer), "text": answer}],
            }
            for name, answer in (("a", "One"), ("b", "four"), ("c", "Five"))
        ],
    }
    write(
        tmp_path / "en.json",
        json.dumps({"data": [{"title": "t", "paragraphs": [paragraph, paragraph | {"qas": []}]}]}),
    )
    found = answer_sentence_sets(tmp_path)["en"]()
    assert found.qrels == {"a": {"0.0": 1}, "b": {"0.1": 1}, "c": {"0.2": 1}}
    assert [passage.id for passage in found.passages()] == [
        "0.0",
        "0.1",
        "0.2",
        "1.0",
        "1.1",
        "1.2",
    ]
    assert list(found.passages())[5].text == "Five."


def test_mr_tydi(tmp_path):
    folder = tmp_path / "mrtydi-v1.1-swahili"
    write(folder / "topic.test.tsv", "1\tNani?\n")
    write(folder / "qrels.test.txt", "1 0 26#0 1\n2 0 26#1 1\n")
    (folder / "collection").mkdir()
    lines = json_lines(
        {"id": "26#0", "contents": "Title\n\nText one."}, {"id": "26#1", "contents": "no title"}
    )
    (folder / "collection" / "docs.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    assert mr_tydi_sets(tmp_path, "dev") == {}
    found = mr_tydi_sets(tmp_path, "test")["swahili"]()
    assert found.queries == {"1": "Nani?"}
    assert found.qrels == {"1": {"26#0": 1}, "2": {"26#1": 1}}
    assert list(found.passages()) == [("26#0", "Title", "Text one."), ("26#1", "", "no title")]
    assert found.passage_count() == 2


def test_passages_are_counted_without_parsing(tmp_path):
    write(
        tmp_path / "corpus.jsonl", json_lines({"_id": "d1", "text": "one"}) + "\n" + "{not JSON\n"
    )
    write(tmp_path / "queries.jsonl", json_lines({"_id": "q1", "text": "eins"}))
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\n")
    found = beir_sets(tmp_path, "test")[""]()
    assert found.passage_count() == 2
    assert (
        found._replace(count_lines=None, passages=lambda: iter([("d1", "", "one")])).passage_count()
        == 1
    )


def test_miracl_reads_its_shards_in_order(tmp_path):
    write(tmp_path / "miracl-v1.0-sw" / "topics" / "topics.miracl-v1.0-sw-dev.tsv", "7\tNani?\n")
    write(
        tmp_path / "miracl-v1.0-sw" / "qrels" / "qrels.miracl-v1.0-sw-dev.tsv",
        "7 Q0 2#1 1\n7\tQ0\t9#1\t0\n",
    )
    for shard in (0, 2, 10):
        write(
            tmp_path / "miracl-corpus-v1.0-sw" / f"docs-{shard}.jsonl",
            json_lines({"docid": f"{shard}#1", "title": "T", "text": "x"}),
        )
    found = miracl_sets(tmp_path, "dev")["sw"]()
    assert found.qrels == {"7": {"2#1": 1, "9#1": 0}}
    assert list(found.passages()) == [("0#1", "T", "x"), ("2#1", "T", "x"), ("10#1", "T", "x")]


def test_beir_alone_and_by_language(tmp_path):
    for place in (tmp_path, tmp_path / "de"):
        write(
            place / "corpus.jsonl",
            json_lines(
                {"_id": "d1", "title": "", "text": "one"},
                {"_id": "d2", "title": "T", "text": " two"},
            ),
        )
        write(
            place / "queries.jsonl",
            json_lines({"_id": "q1", "text": "eins"}, {"_id": "train", "text": "zwei"}),
        )
        write(place / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t2\nq9\td1\t1\n")
    sets = beir_sets(tmp_path, "test")
    assert list(sets) == ["", "de"]
    found = sets["de"]()
    assert found.queries == {"q1": "eins"}
    assert found.qrels == {"q1": {"d2": 2}, "q9": {"d1": 1}}
    assert list(found.passages()) == [("d1", "", "one"), ("d2", "T", "two")]
    assert beir_sets(tmp_path, "dev") == {}


def test_blank_lines_and_unicode_ids(tmp_path):
    folder = tmp_path / "mrtydi-v1.1-korean"
    write(folder / "topic.test.tsv", "é١\t질문\n\n")
    write(folder / "qrels.test.txt", "\né١ Q0 나#1 1\n")
    write(folder / "collection" / "docs.jsonl", '{"id": "나#1", "contents": "제목\\n\\n본문"}\n\n')
    found = mr_tydi_sets(tmp_path, "test")["korean"]()
    assert (found.queries, found.qrels) == ({"é١": "질문"}, {"é١": {"나#1": 1}})
    assert list(found.passages()) == [("나#1", "제목", "본문")]


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ("q1\t0\n", "sw.dev.questions.tsv:1: expected question id"),
        (
            "q1\t2\tNani?\n",
            "sw.dev.questions.tsv:1: unknown passage '2'; sw.dev.passages.txt",
        ),
        ("q1\tone\tNani?\n", "passage 'one'; "),
        ("q1\t0\tNani?\nq1\t1\tWapi?\n", "sw.dev.questions.tsv:2: the id 'q1' occurs twice"),
        ("q1\t0\t \n", "the question is empty"),
        ("", "no questions"),
    ],
)
def test_broken_questions_are_one_line_with_the_place(tmp_path, questions, message):
    write(tmp_path / "sw.dev.questions.tsv", questions)
    write(tmp_path / "sw.dev.passages.txt", "a\nb\n")
    with pytest.raises(DataError) as error:
        question_sets(tmp_path, "dev")["sw"]()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "corpus.jsonl",
            '{"_id": "d1", "text": "x"}\n{"text": "y"}\n',
            "corpus.jsonl:2: expected the key _id or id",
        ),
        ("corpus.jsonl", "{\n", "corpus.jsonl:1: not JSON"),
        ("corpus.jsonl", "[]\n", "corpus.jsonl:1: expected a JSON object, found list"),
        ("queries.jsonl", '{"_id": "q1"}\n', "queries.jsonl:1: expected the key text"),
        (
            "corpus.jsonl",
            '\n{"_id": "d1", "text": null}\n',
            "corpus.jsonl:2: expected the key text",
        ),
        (
            "qrels/test.tsv",
            "q\td\tscore\nq1\td1\thigh\n",
            "test.tsv:2: the relevance",
        ),
        (
            "qrels/test.tsv",
            "q\td\tscore\nq1 d1 1\n",
            "test.tsv:2: expected query, passage, grade",
        ),
    ],
)
def test_broken_beir_files(tmp_path, name, text, message):
    write(tmp_path / "corpus.jsonl", '{"_id": "d1", "text": "x"}\n')
    write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "x"}\n')
    write(tmp_path / "qrels" / "test.tsv", "q\td\tscore\nq1\td1\t1\n")
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as error:
        list(beir_sets(tmp_path, "test")[""]().passages())
    assert message in str(error.value)


def test_missing_files_and_json_of_another_form(tmp_path):
    write(tmp_path / "mrtydi-v1.1-swahili" / "topic.test.tsv", "1\tNani?\n")
    with pytest.raises(DataError, match=r"qrels.test.txt: file not found"):
        mr_tydi_sets(tmp_path, "test")["swahili"]()
    write(tmp_path / "mrtydi-v1.1-swahili" / "qrels.test.txt", "1 0 26#0\n")
    with pytest.raises(DataError, match=r"qrels.test.txt:1: .*found 3 columns"):
        mr_tydi_sets(tmp_path, "test")["swahili"]()
    write(tmp_path / "en.json", '{"data": [{"paragraphs": [{"context": "x", "qas": []}]}]}')
    with pytest.raises(DataError, match=r"en.json: .*form of SQuAD .*KeyError"):
        answer_sentence_sets(tmp_path)["en"]()


def test_judgments_that_contradict_each_other(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "p", "text": "a"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "b"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("q\tp\t1\nq\tp\t1\n")
    assert beir_sets(tmp_path, "test")[""]().qrels == {"q": {"p": 1}}
    (tmp_path / "qrels" / "test.tsv").write_text("q\tp\t1\nq\tp\t0\n")
    with pytest.raises(DataError, match=r"test\.tsv:2: .*'q' .*'p' .*1 and 0"):
        beir_sets(tmp_path, "test")[""]()
