"""Every layout of questions and passages, and the errors of broken ones."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from interlingua.corpus.questions import NO_POSITIVE, NO_TEXT, Question, TitledText, read_questions
from interlingua.errors import DataError

DATA = Path(os.environ.get("INTERLINGUA_DATA", Path.home() / ".cache/interlingua/data"))
DPR = [
    {
        "dataset": "nq",
        "question": "who  wrote hamlet",
        "answers": ["Shakespeare"],
        "positive_ctxs": [{"title": "Hamlet", "text": "A play by\nShakespeare.", "score": 1000,
        "psg_id": "1"},
                          {"title": "", "text": "Hamlet is Shakespeare's."}],
        "negative_ctxs": [{"title": "x", "text": "y"}],
        "hard_negative_ctxs": [{"title": "Ham", "text": "Meat."}],
    },
    {"question": "nobody knows", "positive_ctxs": [], "hard_negative_ctxs": []},
    {"question": "wer schrieb Faust", "language": "de", "positive_ctxs": [{"text": "Goethe."}]},
]  # fmt: skip
MRTYDI = {
    "query_id": "7",
    "query": "서울은?",
    "positive_passages": [{"docid": "5#0", "title": "서울", "text": "수도이다."}],
    "negative_passages": [{"docid": "9#1", "title": "부산", "text": "항구이다."}],
}


def write(path, content):
    text = (
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["biencoder-nq-train.json", "train.json.gz"])
def test_dpr(tmp_path, name):
    skipped = Counter()
    found = list(read_questions(write(tmp_path / "nq" / name, DPR), skipped=skipped))
    positives = (
        TitledText("A play by Shakespeare.", "Hamlet"),
        TitledText("Hamlet is Shakespeare's."),
    )
    assert found == [
        Question("who wrote hamlet", "eng_Latn", positives, (TitledText("Meat.", "Ham"),)),
        Question("wer schrieb Faust", "deu_Latn", (TitledText("Goethe."),)),
    ]
    assert skipped == {NO_POSITIVE: 1}


def test_passages_without_text_are_left_out_and_counted(tmp_path):
    blank, titled = {"title": "", "text": " "}, {"title": "Oslo", "text": ""}
    items = [
        {
            "question": "q",
            "positive_ctxs": [blank, {"title": 1984, "text": "x"}],
            "hard_negative_ctxs": [blank, titled],
        },
        {"question": "r", "positive_ctxs": [titled], "hard_negative_ctxs": None},
        {"question": "s", "positive_ctxs": [{"title": None, "text": None}]},
        {"question": "t", "positive_ctxs": None},
    ]
    skipped = Counter()
    assert list(read_questions(write(tmp_path / "train.json", items), skipped=skipped)) == [
        Question("q", "eng_Latn", (TitledText("x", "1984"),), (TitledText("Oslo"),)),
        Question("r", "eng_Latn", (TitledText("Oslo"),)),
    ]
    assert skipped == {NO_TEXT: 3, NO_POSITIVE: 2}
    write(tmp_path / "en.passages.txt", "\nsecond\n")
    lines = write(tmp_path / "en.questions.tsv", "0\t0\twhat\n1\t1\twho\n")
    assert [question.text for question in read_questions(lines, skipped=skipped)] == ["who"]
    assert skipped == {NO_TEXT: 4, NO_POSITIVE: 3}


def test_blank_documents_of_a_collection_matter_only_if_they_are_answers(tmp_path):
    blank = [
        {"docid": "6#0", "title": "", "text": ""},
        {"docid": "5#0", "title": "Title", "text": None},
    ]
    docs = "".join(json.dumps(one) + "\n" for one in (*blank, CORPUS[1]))
    skipped = Counter()
    found = list(
        read_questions(broken_topics(tmp_path / "mrtydi-v1.1-finnish", docs=docs), skipped=skipped)
    )
    assert [question.positives for question in found] == [
        (TitledText("Title"),),
        (TitledText("only a title"), TitledText("Title")),
    ]
    assert not skipped


def test_dpr_in_another_language_is_called_by_it(tmp_path):
    found = list(read_questions(write(tmp_path / "train.ko.json", DPR)))
    assert [question.language for question in found] == ["kor_Hang", "deu_Latn"]


def test_languages_are_filtered_by_any_of_their_codes(tmp_path):
    path, skipped = write(tmp_path / "train.json", DPR), Counter()
    assert [q.text for q in read_questions(path, languages=("German",), skipped=skipped)] == [
        "wer schrieb Faust"
    ]
    assert skipped == {"question in another language": 2}
    assert [q.text for q in read_questions(path, languages=("en",))] == ["who wrote hamlet"]


@pytest.mark.parametrize(
    "name", ["mrtydi-v1.1-korean/train.jsonl.gz", "ko.train.jsonl", "ko/data.jsonl"]
)
def test_mrtydi_of_the_hub(tmp_path, name):
    lines = json.dumps(MRTYDI, ensure_ascii=False) + "\n\n"
    (found,) = read_questions(write(tmp_path / name, lines))
    passages = (TitledText("수도이다.", "서울"),), (TitledText("항구이다.", "부산"),)
    assert found == Question("서울은?", "kor_Hang", *passages)


def squad(**more):
    asked = [
        {"id": "1", "question": "Who won?", "answers": []},
        {"id": "2", "question": "Who lost?", **more},
    ]
    return {
        "data": [
            {
                "title": "Super_Bowl_50",
                "paragraphs": [{"context": "\ufeffDenver won.", "qas": asked}],
            }
        ]
    }


def test_squad(tmp_path):
    found = list(read_questions(write(tmp_path / "train-v1.1.json", squad())))
    answer = (TitledText("Denver won.", "Super Bowl 50"),)
    assert found == [
        Question("Who won?", "eng_Latn", answer),
        Question("Who lost?", "eng_Latn", answer),
    ]
    assert {q.language for q in read_questions(write(tmp_path / "th.json", squad()))} == {
        "tha_Thai"
    }


def test_squad_questions_without_an_answer_are_left_out(tmp_path):
    skipped = Counter()
    path = write(tmp_path / "train-v2.0.json", squad(is_impossible=True))
    assert [q.text for q in read_questions(path, skipped=skipped)] == ["Who won?"]
    assert skipped == {NO_POSITIVE: 1}


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_lines(tmp_path, ending):
    write(tmp_path / f"te.train.passages.txt{ending}", "first\nsecond\u2028one\n")
    path = write(
        tmp_path / f"te.train.questions.tsv{ending}",
        "0\t1\twhat\tone\n0\t0\twhich\tfirst\n1\t1\twho\n",
    )
    found = list(read_questions(path))
    assert [(q.text, q.positives[0].text) for q in found] == [
        ("what", "second one"),
        ("which", "first"),
        ("who", "second one"),
    ]
    assert {q.language for q in found} == {"tel_Telu"}


TOPICS = "1\twhere is it\n2\twho is it\n"
QRELS = "1 Q0 5#0 1\n1 Q0 5#1 0\n2 Q0 7#2 1\n2 Q0 5#0 1\n"
DOCS = [{"id": "5#0", "contents": "Title\n\nIt is  here."}, {"id": "5#1", "contents": "T\n\nno"},
        {"id": "7#2", "contents": "only a title"}]  # fmt: skip
CORPUS = [
    {"docid": "5#0", "title": "Title", "text": "It is here."},
    {"docid": "7#2", "title": "", "text": "only a title"},
]
EXPECTED = [
    Question("where is it", "fin_Latn", (TitledText("It is here.", "Title"),)),
    Question(
        "who is it", "fin_Latn", (TitledText("only a title"), TitledText("It is here.", "Title"))
    ),
]


@pytest.mark.parametrize(
    ("topics", "qrels", "collection", "documents"),
    [
        ("topic.train.tsv", "qrels.train.txt", "collection/docs.jsonl.gz", DOCS),
        ("topic.train.tsv.gz", "qrels.train.txt.gz", "collection/docs.jsonl", DOCS),
        (
            "ir-format-data/topics.train.txt",
            "ir-format-data/qrels.train.txt",
            "corpus.jsonl.gz",
            CORPUS,
        ),
        (
            "ir-format-data/topics.dev.txt",
            "ir-format-data/qrels.dev.txt",
            "collection/docs.jsonl",
            DOCS,
        ),
    ],
)
def test_mrtydi_as_topics_qrels_and_collection(tmp_path, topics, qrels, collection, documents):
    folder = tmp_path / "mrtydi-v1.1-finnish"
    write(folder / qrels, QRELS)
    write(folder / "qrels.other.txt", "1 0 nothing 1\n")
    write(folder / collection, "".join(json.dumps(one) + "\n" for one in documents))
    assert list(read_questions(write(folder / topics, TOPICS))) == EXPECTED


def broken_topics(folder, **files):
    names = {
        "qrels": "qrels.train.txt",
        "docs": "collection/docs.jsonl",
        "topics": "topic.train.tsv",
    }
    docs = "".join(json.dumps(one) + "\n" for one in DOCS)
    for key, content in {"qrels": QRELS, "docs": docs, "topics": TOPICS, **files}.items():
        if content is not None:
            write(folder / names[key], content)
    return folder / "topic.train.tsv"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"qrels": None}, r"there is no qrels.train.txt .*"),
        ({"docs": None}, r"there is no docs.jsonl .*"),
        (
            {"qrels": "1 0 5#0\n"},
            r"qrels.train.txt:1: '1 0 5#0', expected: question 0 passage grade",
        ),
        (
            {"qrels": "1 0 99 1\n"},
            "docs.jsonl: 1 passages .*'99'",
        ),
        ({"docs": '{"id": "5#0"}\n'}, r"docs.jsonl:1: 'text' is missing"),
        ({"topics": "1\n"}, r"topic.train.tsv:1: '1', expected question id, question"),
    ],
)
def test_broken_topics(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        list(read_questions(broken_topics(tmp_path / "mrtydi-v1.1-korean", **files)))


def test_topics_without_a_language(tmp_path):
    with pytest.raises(DataError, match="name or its folder's"):
        list(read_questions(broken_topics(tmp_path / "mine" / "mine")))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.csv", "", "unknown layout"),
        ("nq.json", '[\n{"question": " "}]', r"nq.json:2: 'question' is blank"),
        ("nq.json", '[\n{"question": true}]', r"nq.json:2: 'question' must be text"),
        (
            "nq.json",
            '[{"question": "a", "positive_ctxs": [{"title": [], "text": "x"}]}]',
            r"'title' must be text",
        ),
        (
            "nq.json",
            '{"data": [{"paragraphs": [{"context": "c", "qas": [{"question": ""}]}]}]}',
            r"'question' is blank",
        ),
        ("nq.json", '[\n{"positive_ctxs": []}]', r"nq.json:2: 'question' is missing"),
        (
            "nq.json",
            '[\n{"question": "a", "positive_ctxs": {}}]',
            r"nq.json:2: positive_ctxs is not a list",
        ),
        (
            "nq.json",
            '[{"question": "a", "positive_ctxs": [{"title": "x"}]}]',
            r"nq.json:1: 'text' is missing",
        ),
        ("nq.json", '[{"question": "a", "language": "qqq"}]', r"nq.json:1: language .*qqq"),
        ("nq.json", '[{"question": "a"},\n3]', r"nq.json:2: 'question' is missing"),
        ("nq.json", '{"data": [{"title": "x"}]}', r"not SQuAD's form .*KeyError 'paragraphs'"),
        ("nq.json", '{"data":\n,}', r"nq.json:2: not JSON"),
        ("mrtydi.jsonl", '{"query": "a"}\n', r"mrtydi.jsonl:1: its language is unknown"),
        ("ko.jsonl", '{"query": "a"}\n[]\n', r"ko.jsonl:2: list, expected an object"),
        ("ko.jsonl", "{\n", r"ko.jsonl:1: not JSON"),
        ("questions.questions.tsv", "", "no language in"),
        ("en.questions.tsv", "", r"en.passages.txt: no such file"),
    ],
)
def test_broken_files(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        list(read_questions(write(tmp_path / "x" / "y" / name, text)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "0\t2\twhat\n",
            ":1: passage '2', .*en.passages.txt",
        ),
        ("0\t-1\twhat\n", r":1: passage '-1'"),
        ("\n0\t1\n", r":2: '0\\t1', expected question id"),
    ],
)
def test_broken_lines(tmp_path, line, message):
    write(tmp_path / "en.passages.txt", "one\ntwo\n")
    with pytest.raises(DataError, match=message):
        list(read_questions(write(tmp_path / "en.questions.tsv", line)))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "questions", "passages", "language"),
    [
        ("tydiqa_goldp/en.train.questions.tsv", 3696, 3429, "eng_Latn"),
        ("tydiqa_goldp/te.dev.questions.tsv", 669, 601, "tel_Telu"),
        ("xquad/th.questions.tsv", 1190, 240, "tha_Thai"),
        ("xquad_r/zh.json", 1190, 240, "zho_Hans"),
    ],
)
def test_real_files(name, questions, passages, language):
    if not (DATA / name).is_file():
        pytest.skip("the public data sets are not here")
    found = list(read_questions(DATA / name))
    assert len(found) == questions
    assert len({question.positives[0].text for question in found}) == pytest.approx(
        passages, rel=0.02
    )
    assert {question.language for question in found} == {language}
