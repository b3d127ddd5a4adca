"""Every layout of questions and passages, and the errors of broken ones."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from interlingua.corpus.formats.questions import (
    _NO_TEXT,
    NO_POSITIVE,
    Question,
    TitledText,
    read_questions,
)
from interlingua.errors import DataError, LanguageError
from tests.corpus.conftest import write

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


@pytest.mark.parametrize("name", ["biencoder-nq-train.json", "train.json.gz"])
def test_dpr(tmp_path, name):
    skipped = Counter()
    path = write(tmp_path / "nq" / name, json.dumps(DPR, indent=1))
    play = TitledText("A play by Shakespeare.", "Hamlet")
    positives = (play, TitledText("Hamlet is Shakespeare's."))
    assert list(read_questions(path, skipped=skipped)) == [
        Question("who wrote hamlet", "eng_Latn", positives, (TitledText("Meat.", "Ham"),)),
        Question("wer schrieb Faust", "deu_Latn", (TitledText("Goethe."),)),
    ]
    assert skipped == {NO_POSITIVE: 1}


def test_passages_without_text_are_left_out_and_counted(tmp_path):
    blank, titled = {"title": "", "text": " "}, {"title": "Oslo", "text": ""}
    positives = [blank, {"title": 1984, "text": "x"}]
    items = [
        {"question": "q", "positive_ctxs": positives, "hard_negative_ctxs": [blank, titled]},
        {"question": "r", "positive_ctxs": [titled], "hard_negative_ctxs": None},
        {"question": "s", "positive_ctxs": [{"title": None, "text": None}]},
        {"question": "t", "positive_ctxs": None},
    ]
    skipped = Counter()
    path = write(tmp_path / "train.json", json.dumps(items))
    assert list(read_questions(path, skipped=skipped)) == [
        Question("q", "eng_Latn", (TitledText("x", "1984"),), (TitledText("Oslo"),)),
        Question("r", "eng_Latn", (TitledText("Oslo"),)),
    ]
    assert skipped == {_NO_TEXT: 3, NO_POSITIVE: 2}
    write(tmp_path / "en.passages.txt", "\nsecond\n")
    lines = write(tmp_path / "en.questions.tsv", "0\t0\twhat\n1\t1\twho\n")
    assert [question.text for question in read_questions(lines, skipped=skipped)] == ["who"]
    assert skipped == {_NO_TEXT: 4, NO_POSITIVE: 3}


def test_blank_documents_of_a_collection_matter_only_if_they_are_answers(tmp_path):
    blank = [
        {"docid": "6#0", "title": "", "text": ""},
        {"docid": "5#0", "title": "Title", "text": None},
    ]
    skipped = Counter()
    path = topics_in(tmp_path / "mrtydi-v1.1-finnish", docs=[*blank, CORPUS[1]])
    assert [question.positives for question in read_questions(path, skipped=skipped)] == [
        (TitledText("Title"),),
        (TitledText("only a title"), TitledText("Title")),
    ]
    assert not skipped


def test_dpr_in_another_language_is_called_by_it(tmp_path):
    asked = [{**DPR[0], "question": "햄릿은 누가 썼습니까"}, *DPR[1:]]
    found = read_questions(write(tmp_path / "train.ko.json", json.dumps(asked)))
    assert [question.language for question in found] == ["kor_Hang", "deu_Latn"]


def test_languages_are_filtered_by_any_of_their_codes(tmp_path):
    path, skipped = write(tmp_path / "train.json", json.dumps(DPR)), Counter()
    german = read_questions(path, languages=("German",), skipped=skipped)
    assert [q.text for q in german] == ["wer schrieb Faust"]
    assert skipped == {"question in another language": 2}
    assert [q.text for q in read_questions(path, languages=("en",))] == ["who wrote hamlet"]


@pytest.mark.parametrize(
    "name", ["mrtydi-v1.1-korean/train.jsonl.gz", "ko.train.jsonl", "ko/data.jsonl"]
)
def test_mrtydi_of_the_hub(tmp_path, name):
    (found,) = read_questions(write(tmp_path / name, MRTYDI, ""))
    passages = (TitledText("수도이다.", "서울"),), (TitledText("항구이다.", "부산"),)
    assert found == Question("서울은?", "kor_Hang", *passages)


def squad(path, **more):
    asked = [
        {"id": "1", "question": "Who won?", "answers": []},
        {"id": "2", "question": "Who lost?", **more},
    ]
    paragraphs = [{"context": "\ufeffDenver won.", "qas": asked}]
    return write(path, {"data": [{"title": "Super_Bowl_50", "paragraphs": paragraphs}]})


def test_squad(tmp_path):
    found = list(read_questions(squad(tmp_path / "train-v1.1.json")))
    answer = (TitledText("Denver won.", "Super Bowl 50"),)
    assert found == [
        Question("Who won?", "eng_Latn", answer),
        Question("Who lost?", "eng_Latn", answer),
    ]
    assert {q.language for q in read_questions(squad(tmp_path / "th.json"))} == {"tha_Thai"}


def test_squad_questions_without_an_answer_are_left_out(tmp_path):
    skipped = Counter()
    path = squad(tmp_path / "train-v2.0.json", is_impossible=True)
    assert [q.text for q in read_questions(path, skipped=skipped)] == ["Who won?"]
    assert skipped == {NO_POSITIVE: 1}


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_lines(tmp_path, ending):
    write(tmp_path / f"te.train.passages.txt{ending}", "first\nsecond\u2028one\n")
    lines = ("0\t1\twhat\tone", "0\t0\twhich\tfirst", "1\t1\twho")
    found = list(read_questions(write(tmp_path / f"te.train.questions.tsv{ending}", *lines)))
    answers = [("what", "second one"), ("which", "first"), ("who", "second one")]
    assert [(q.text, q.positives[0].text) for q in found] == answers
    assert {q.language for q in found} == {"tel_Telu"}


TOPICS = "1\twhere is it\n2\twho is it\n"
QRELS = "1 Q0 5#0 1\n1 Q0 5#1 0\n2 Q0 7#2 1\n2 Q0 5#0 1\n"
DOCS = [{"id": "5#0", "contents": "Title\n\nIt is  here."}, {"id": "5#1", "contents": "T\n\nno"},
        {"id": "7#2", "contents": "only a title"}]  # fmt: skip
CORPUS = [
    {"docid": "5#0", "title": "Title", "text": "It is here."},
    {"docid": "7#2", "title": "", "text": "only a title"},
]
HERE = TitledText("It is here.", "Title")
EXPECTED = [
    Question("where is it", "fin_Latn", (HERE,)),
    Question("who is it", "fin_Latn", (TitledText("only a title"), HERE)),
]


@pytest.mark.parametrize(
    ("topics", "qrels", "collection", "documents"),
    [
        ("topic.train.tsv", "qrels.train.txt", "collection/docs.jsonl.gz", DOCS),
        ("topic.train.tsv.gz", "qrels.train.txt.gz", "collection/docs.jsonl", DOCS),
        ("ir/topics.train.txt", "ir/qrels.train.txt", "corpus.jsonl.gz", CORPUS),
        ("ir/topics.dev.txt", "ir/qrels.dev.txt", "collection/docs.jsonl", DOCS),
    ],
)
def test_mrtydi_as_topics_qrels_and_collection(tmp_path, topics, qrels, collection, documents):
    folder = tmp_path / "mrtydi-v1.1-finnish"
    write(folder / qrels, QRELS)
    write(folder / "qrels.other.txt", "1 0 nothing 1\n")
    write(folder / collection, *documents)
    assert list(read_questions(write(folder / topics, TOPICS))) == EXPECTED


def topics_in(folder, *, qrels=QRELS, docs=DOCS, topics=TOPICS):
    """Write the three files in their layout, except those that are None."""
    if qrels is not None:
        write(folder / "qrels.train.txt", qrels)
    if docs is not None:
        write(folder / "collection" / "docs.jsonl", *docs)
    return write(folder / "topic.train.tsv", topics)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"qrels": None}, r"qrels.train.txt not found"),
        ({"docs": None}, r"docs.jsonl not found"),
        ({"qrels": "1 0 5#0\n"}, "qrels.train.txt:1: .*question 0 passage grade, found 3"),
        ({"qrels": "1 0 99 1\n"}, "docs.jsonl: .*1 passage .*'99'"),
        ({"docs": [{"id": "5#0"}]}, r"docs.jsonl:1: .* key text, found only id"),
        ({"topics": "1\n"}, r"topic.train.tsv:1: .*question id, question .* 1 column"),
    ],
)
def test_broken_topics(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        list(read_questions(topics_in(tmp_path / "mrtydi-v1.1-korean", **files)))


def test_topics_without_a_language(tmp_path):
    with pytest.raises(DataError, match="'language'"):
        list(read_questions(topics_in(tmp_path / "mine" / "mine")))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.csv", "", "unknown layout"),
        ("nq.json", '[\n{"question": " "}]', r"nq.json:2: 'question' is blank"),
        ("nq.json", '[\n{"question": true}]', r"nq.json:2: 'question': expected text"),
        (
            "nq.json",
            '[{"question": "a", "positive_ctxs": [{"title": [], "text": "x"}]}]',
            "'title': expected text",
        ),
        (
            "nq.json",
            '{"data": [{"paragraphs": [{"context": "c", "qas": [{"question": ""}]}]}]}',
            "'question' is blank",
        ),
        ("nq.json", '[\n{"positive_ctxs": []}]', r"nq.json:2: .* key question"),
        (
            "nq.json",
            '[\n{"question": "a", "positive_ctxs": {}}]',
            r"nq.json:2: positive_ctxs: expected a list",
        ),
        (
            "nq.json",
            '[{"question": "a", "positive_ctxs": [{"title": "x"}]}]',
            r"nq.json:1: .* key text",
        ),
        ("nq.json", '[{"question": "a", "language": "qqq"}]', r"nq.json:1: language .*qqq"),
        ("nq.json", '[{"question": "a"},\n3]', r"nq.json:2: expected an object"),
        ("nq.json", '{"data": [{"title": "x"}]}', r"form of SQuAD .*KeyError 'paragraphs'"),
        ("nq.json", '{"data":\n,}', r"nq.json:2: not JSON"),
        ("mrtydi.jsonl", '{"query": "a"}\n', r"mrtydi.jsonl: the language is unknown"),
        ("ko.jsonl", '{"query": "a"}\n[]\n', r"ko.jsonl:2: .*list"),
        ("ko.jsonl", "{\n", r"ko.jsonl:1: not JSON"),
        ("questions.questions.tsv", "", "questions.passages.txt: file not found"),
        ("en.questions.tsv", "", r"en.passages.txt: file not found"),
    ],
)
def test_broken_files(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        list(read_questions(write(tmp_path / "x" / "y" / name, text)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0\t2\twhat\n", ":1: unknown passage '2'; en.passages.txt .* 0 to 1"),
        ("0\t-1\twhat\n", r":1: unknown passage '-1'"),
        ("\n0\t1\n", r":2: .*question id.* 2 columns"),
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
    texts = {question.positives[0].text for question in found}
    assert len(texts) == pytest.approx(passages, rel=0.02)
    assert {question.language for question in found} == {language}


def test_a_passage_in_another_language_names_it(tmp_path):
    item = {
        "question": "Missä?",
        "language": "fi",
        "positive_ctxs": [{"text": "By the sea.", "language": "en"}],
        "hard_negative_ctxs": [{"text": "Meren rannalla."}],
    }
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([item]), "utf-8")
    (question,) = read_questions(path)
    assert question.language == "fin_Latn"
    assert [passage.language for passage in question.positives] == ["eng_Latn"]
    assert [passage.language for passage in question.hard_negatives] == [""]
    path.write_text(json.dumps([{**item, "positive_ctxs": [{"text": "a", "language": "??"}]}]))
    with pytest.raises(DataError, match="language"):
        list(read_questions(path))


ITALIAN = ["dove si trova il museo", "chi ha scritto il libro che non è nella casa", "di chi è"]
ENGLISH = ["where is the museum of the city", "who wrote the book that is in the house", "what"]


def asked(path, texts):
    lines = [{"query": text, "positive_passages": [{"text": "x"}]} for text in texts]
    return [question.language for question in read_questions(write(path, *lines))]


@pytest.mark.parametrize("name", ["ko.jsonl", "korean/train.jsonl", "qa-ko/dev/train.jsonl"])
def test_a_name_of_a_language_in_another_script_is_refused(tmp_path, name):
    path = tmp_path / name
    assert set(asked(path, ["서울은 어디에 있습니까"])) == {"kor_Hang"}
    with pytest.raises(LanguageError, match=r"train|ko"):
        asked(path, ["Где находится музей", "Кто написал эту книгу"])


@pytest.mark.parametrize("name", ["it/train.jsonl", "it.train.jsonl", "it/dev/train.jsonl"])
def test_a_name_that_is_also_a_word_is_a_language_if_the_questions_are(tmp_path, name):
    assert set(asked(tmp_path / name, ITALIAN)) == {"ita_Latn"}
    with pytest.raises(DataError, match="language is unknown"):
        asked(tmp_path / name, ENGLISH)


def test_a_code_of_a_country_is_the_language_of_the_questions(tmp_path):
    assert set(asked(tmp_path / "kr" / "train.jsonl", ["서울은 어디에 있습니까"])) == {"kor_Hang"}


def test_questions_of_dpr_in_another_script_are_not_english(tmp_path):
    item = {"question": "서울은 어디에 있습니까", "positive_ctxs": [{"text": "x"}]}
    with pytest.raises(LanguageError, match="kor_Hang"):
        list(read_questions(write(tmp_path / "train.json", json.dumps([item]))))
