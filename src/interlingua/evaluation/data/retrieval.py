"""Retrieval sets in a folder: questions, passages, and judgments of the passages per question.

The layouts are those in which the sets are published:

- TyDi GoldP and XQuAD: ``sw.dev.questions.tsv`` (id, line of the passage, question, answer),
  ``sw.dev.passages.txt``;
- XQuAD-R: ``ar.json``, SQuAD with ``sentences``; the sentence that holds the answer is to be found;
- Mr.TyDi: ``mrtydi-v1.1-arabic/`` with ``topic.test.tsv``, ``qrels.test.txt`` and
  ``collection/docs.jsonl.gz``;
- MIRACL: ``miracl-v1.0-ar/{topics,qrels}/`` next to ``miracl-corpus-v1.0-ar/docs-*.jsonl.gz``;
- BEIR: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``, or a folder of these per
  language.

Passages are read anew for each use and never held, so that there may be millions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.config.languages import resolve_code
from interlingua.corpus.formats.questions import (
    Judgment,
    PoolPassage,
    beir_qrels,
    documents,
    first_text,
    passages_of,
    question_lines,
    squad_errors,
    squad_paragraphs,
    topics,
    trec_qrels,
)
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import content_sha256, folders_in, matching_files
from interlingua.evaluation.metrics.ranking import Qrels
from interlingua.retrieval.passage_files import LANGUAGE_KEYS
from interlingua.storage.files import COMPRESSIONS, open_text
from interlingua.storage.json_text import json_lines

QUESTIONS_FILE = re.compile(
    r"([a-z]{2,3}(?:_[A-Z][a-z]{3})?)(?:\.(train|dev|test))?\.questions\.tsv"
)
_JSON_FILE = re.compile(r"([a-z]{2,3}(?:_[A-Z][a-z]{3})?)\.json")
_MR_TYDI = re.compile(r"mrtydi-v[\d.]+-([a-z]+)")
_MIRACL = re.compile(r"miracl-v([\d.]+)-([a-z]{2,3})")


Passages = Callable[[], Iterator[PoolPassage]]


class RetrievalSet(NamedTuple):
    """The questions in one language and what they are to find.

    Attributes:
        queries: id -> question.
        qrels: id -> passage id -> relevance, above 0 for those to be found.
        passages: yields every passage, from the start on each call.
        count_lines: counts the passages without parsing them; None if they have to be
            read.
        development: the questions of another split of the same data, for tuning.
    """

    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    passages: Passages
    count_lines: Callable[[], int] | None = None
    development: RetrievalSet | None = None

    def passage_count(self) -> int:
        """Count the passages; a large collection is decompressed for it, but not parsed."""
        if self.count_lines is not None:
            return self.count_lines()
        return sum(1 for _ in self.passages())


Sets = dict[str, Callable[[], RetrievalSet]]
"""Language, as the files spell it -> function that reads its set."""


def question_sets(folder: Path, split: str | None = None) -> Sets:
    """Return the readers of TyDi GoldP (with a split) or XQuAD (without)."""
    found: Sets = {}
    for match, path in matching_files(folder, QUESTIONS_FILE):
        if match[2] == split:
            found[match[1]] = functools.partial(_read_questions, path)
    return found


def answer_sentence_sets(folder: Path) -> Sets:
    """Return the readers of XQuAD-R."""
    return {
        match[1]: functools.partial(_read_answer_sentences, path)
        for match, path in matching_files(folder, _JSON_FILE)
    }


def mr_tydi_sets(folder: Path, split: str) -> Sets:
    """Return the readers of Mr.TyDi for the languages that have this split."""
    found: Sets = {}
    for below in folders_in(folder):
        if (match := _MR_TYDI.fullmatch(below.name)) and (below / f"topic.{split}.tsv").is_file():
            files = (
                below / f"topic.{split}.tsv",
                below / f"qrels.{split}.txt",
                [below / "collection" / "docs.jsonl"],
            )
            found[match[1]] = functools.partial(_read_trec, *files)
    return found


def miracl_sets(folder: Path, split: str) -> Sets:
    """Return the readers of MIRACL for the languages that have this split."""
    found: Sets = {}
    for below in folders_in(folder):
        if match := _MIRACL.fullmatch(below.name):
            name = f"{below.name}-{split}.tsv"
            topics = below / "topics" / f"topics.{name}"
            qrels = below / "qrels" / f"qrels.{name}"
            corpus = folder / f"miracl-corpus-v{match[1]}-{match[2]}"
            if topics.is_file():
                # in the order of their numbers: docs-10 behind docs-9
                shards = sorted(corpus.glob("docs-*.jsonl*"), key=_shard_number)
                # without the collection the error names the file to fetch
                if not shards:
                    shards = [corpus / "docs-0.jsonl.gz"]
                found[match[2]] = functools.partial(_read_trec, topics, qrels, shards)
    return found


def beir_sets(folder: Path, split: str) -> Sets:
    """Return the readers of BEIR's layout, in the folder itself or in a folder per language.

    The language of a set in the folder itself is unknown; its key is ``""``.
    """
    folders = {"": folder} | {below.name: below for below in folders_in(folder)}
    return {
        name: functools.partial(_read_beir, below, split)
        for name, below in folders.items()
        if (below / "qrels" / f"{split}.tsv").is_file()
    }


def _read_questions(path: Path) -> RetrievalSet:
    passages_path = passages_of(path)
    with open_text(passages_path) as lines:
        # to check the line numbers of the questions before anything is embedded
        count = sum(1 for _ in lines)
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for line, name, passage, question in question_lines(path, count):
        _add(queries, name, question, path, line)
        qrels[name] = {str(passage): 1}

    def passages() -> Iterator[PoolPassage]:
        with open_text(passages_path) as texts:
            for number, text in enumerate(texts):
                yield PoolPassage(str(number), "", text.rstrip("\r\n"))

    return RetrievalSet(_filled(queries, path), qrels, passages)


def _read_answer_sentences(path: Path) -> RetrievalSet:
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    sentences: list[PoolPassage] = []
    with squad_errors(path, "sentences, sentence_breaks"):
        for number, (_, paragraph) in enumerate(squad_paragraphs(path)):
            # ids are paragraph.sentence, counted from 0, and the same in every language
            for place, sentence in enumerate(paragraph["sentences"]):
                sentences.append(PoolPassage(f"{number}.{place}", "", sentence))
            for question in paragraph["qas"]:
                start = question["answers"][0]["answer_start"]
                text = first_text(question, ("question",), (path, None))
                _add(queries, question["id"], text, path, None)
                sentence = _sentence_at(start, paragraph["sentence_breaks"])
                qrels[question["id"]] = {f"{number}.{sentence}": 1}
    return RetrievalSet(_filled(queries, path), qrels, lambda: iter(sentences))


def _sentence_at(start: int, breaks: list[list[int]]) -> int:
    """Return the index of the last sentence that starts at or before the start of an answer."""
    return max(place for place, (begin, _) in enumerate(breaks) if begin <= start)


def _read_trec(topics_path: Path, qrels_path: Path, corpus: list[Path]) -> RetrievalSet:
    queries: dict[str, str] = {}
    for line, name, question in topics(topics_path):
        _add(queries, name, question, topics_path, line)
    files = [_packed(path) for path in corpus]
    return RetrievalSet(
        _filled(queries, topics_path),
        _judged(trec_qrels(qrels_path), qrels_path),
        lambda: documents(files, ("docid", "id")),
        lambda: _line_count(files),
    )


def _read_beir(folder: Path, split: str) -> RetrievalSet:
    queries, qrels, _ = _beir_questions(folder, split)
    corpus = [_packed(folder / "corpus.jsonl")]
    return RetrievalSet(
        queries,
        qrels,
        lambda: documents(corpus, ("_id", "id")),
        lambda: _line_count(corpus),
    )


def _beir_questions(
    folder: Path, split: str
) -> tuple[dict[str, str], dict[str, dict[str, int]], dict[str, str]]:
    """Return the texts of judged questions, the judgments, and the languages that are named."""
    queries: dict[str, str] = {}
    languages: dict[str, str] = {}
    path = _packed(folder / "queries.jsonl")
    for line, record in json_lines(path):
        name = first_text(record, ("_id", "id"), (path, line))
        _add(queries, name, first_text(record, ("text",), (path, line)), path, line)
        language = next((record[key] for key in LANGUAGE_KEYS if record.get(key)), None)
        if language is not None:
            languages[name] = resolve_code(str(language))
    judgments = folder / "qrels" / f"{split}.tsv"
    qrels = _judged(beir_qrels(judgments), judgments)
    # the file holds the questions of every split
    questions = {name: text for name, text in queries.items() if name in qrels}
    return _filled(questions, judgments), qrels, languages


class JudgedQuestions(NamedTuple):
    """Questions of one language to passages that are stored elsewhere.

    Attributes:
        queries: id -> question.
        qrels: id -> passage id -> relevance, above 0 for those to be found.
    """

    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]


def questions_by_language(
    folder: Path, split: str, language: str | None = None
) -> dict[str, JudgedQuestions]:
    """Read ``queries.jsonl`` and ``qrels/SPLIT.tsv``; each question may name its language.

    Args:
        folder: of the files.
        split: the file of ``qrels/``.
        language: full code for the questions that name no language.

    Returns:
        Full code -> its questions with a relevant passage; none if the files are not there.

    Raises:
        DataError: a file is damaged, or a question names no language and there is no default.
    """
    judged = folder / "qrels" / f"{split}.tsv"
    if not judged.is_file():
        return {}
    queries, qrels, languages = _beir_questions(folder, split)
    found: dict[str, JudgedQuestions] = {}
    for name, text in queries.items():
        code = languages.get(name, language)
        if code is None:
            raise DataError(
                f'the question {name!r} has no language; add "language": "de" to its line, or pass'
                " the language of all questions: --languages de",
                path=folder / "queries.jsonl",
            )
        if max(qrels[name].values()) > 0:
            one = found.setdefault(code, JudgedQuestions({}, {}))
            one.queries[name] = text
            one.qrels[name] = qrels[name]
    if not found:
        raise DataError("no question has a relevant passage; check the judgments", path=judged)
    return found


def _line_count(files: Iterable[Path]) -> int:
    """Count the lines that are not blank, without parsing them."""
    count = 0
    for path in files:
        with open_text(path, is_json=True) as lines:
            count += sum(bool(line.strip()) for line in lines)
    return count


def _add(queries: dict[str, str], name: str, text: str, path: Path, line: int | None) -> None:
    if name in queries:
        raise DataError(f"the id {name!r} occurs twice; use unique ids", path=path, line=line)
    queries[name] = text.strip()


def _judged(judgments: Iterable[Judgment], path: Path) -> dict[str, dict[str, int]]:
    """Return the grades by question and passage; duplicate judgments must agree."""
    qrels: dict[str, dict[str, int]] = {}
    for line, query, passage, grade in judgments:
        of_query = qrels.setdefault(query, {})
        if of_query.setdefault(passage, grade) != grade:
            both = f"relevance {of_query[passage]} and {grade}"
            raise DataError(
                f"query {query!r} and passage {passage!r} occur twice, with {both}; remove one",
                path=path,
                line=line,
            )
    return qrels


def _filled(queries: dict[str, str], path: Path) -> dict[str, str]:
    if not queries:
        raise DataError("the file contains no questions; download it again", path=path)
    return queries


def _packed(path: Path) -> Path:
    """Return the file itself or its compressed form; the plain name if neither exists."""
    for suffix in ("", *COMPRESSIONS):
        packed = path.with_name(path.name + suffix)
        if packed.is_file():
            return packed
    return path


def _shard_number(path: Path) -> int:
    # docs-12.jsonl.gz: the digits before the first dot
    return int("".join(filter(str.isdigit, path.name.split(".", 1)[0])) or 0)


def judged_questions(one: RetrievalSet, passages: Sequence[str]) -> tuple[Qrels, list[str]]:
    """Return the judgments of questions with a relevant passage, and notes about the others."""
    judged = {
        query: grades for query, grades in one.qrels.items() if max(grades.values(), default=0) > 0
    }
    if not judged:
        raise DataError(
            "no question has a relevant passage; check that questions and judgments are of the"
            " same data set"
        )
    relevant: set[str] = set()
    for grades in judged.values():
        relevant.update(passage for passage, grade in grades.items() if grade > 0)
    # count everything that is left out or scored as 0, so that nothing is dropped silently
    without_text = sum(query not in one.queries for query in judged)
    without_judgment = sum(query not in one.qrels for query in one.queries)
    counts = {
        "questions with judgments have no text and count as 0": without_text,
        "questions without a relevant passage were skipped": len(one.qrels) - len(judged),
        "questions without a judgment were skipped": without_judgment,
        "relevant passages are missing from the passages": len(relevant.difference(passages)),
    }
    return judged, [f"{count:,} {what}" for what, count in counts.items() if count]


def set_sha256(one: RetrievalSet, passages: str) -> str:
    """Return the SHA-256 of questions, judgments and passages (``passages``: their digest)."""
    judgments = []
    for query, found in one.qrels.items():
        judgments += [f"{query} {passage} {grade}" for passage, grade in found.items()]
    return content_sha256([list(one.queries), list(one.queries.values()), judgments, [passages]])
