"""A sheet of scored pairs for a person to judge, and the answers that are read back from it.

The sheet holds the worst pairs of a stream, pairs with a fault that a check finds, and a random
sample of all others. The answers for this sample calibrate all scores that are higher than those
of the worst pairs. A ``ReviewSampler`` keeps the pairs in bounded memory while it reads the stream;
``read_labels`` reads the answers.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from interlingua.corpus.formats import workbook
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import pair_fields
from interlingua.corpus.formats.labeled_pairs import PairLayout, labeled_rows
from interlingua.corpus.formats.spreadsheet import csv_rows, open_sheet
from interlingua.corpus.formats.table_columns import folded_name
from interlingua.corpus.formats.workbook import FORMULA_SIGNS, CellValue, SheetForm, WriteCells
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.mining.checks import Checker
from interlingua.mining.rules.tags import InlineTags, with_tags
from interlingua.mining.writer import PairRow, tsv_writer
from interlingua.storage.files import (
    PathLike,
    open_text,
    open_text_writer,
    stem_and_suffix,
    tab_rows,
)

log = logging.getLogger("interlingua")
ANSWERS = ("good", "bad", "unsure")
"""The answers that the sheet offers."""
_FORMATS = ("xlsx", "csv", "tsv")
_WIDTHS = {
    "id": 14,
    "file": 18,
    "position": 9,
    "source": 60,
    "target": 60,
    "score": 9,
    "probability": 11,
    "reasons": 36,
    "chosen": 11,
    "answer": 10,
}
"""Columns of the sheet, with their widths; it has either the score or the probability."""
_ID_NAMES = ("id", "key", "tuid", "context", "#context")
"""Fields of a pair that identify it in its file, the best first."""
_FILE_NAMES = ("original", "source_document")
"""Fields that name the file of a pair: of XLIFF, and of a translation memory of documents."""
_MAX_CELL = 32_000
"""Maximum number of characters of a text in a cell; the limit of Excel is slightly higher."""
_WORDS = {
    "good": ("good", "g", "y", "yes", "1", "true", "t", "right", "correct", "ok", "✓", "✔"),
    "bad": ("bad", "b", "n", "no", "0", "false", "f", "wrong", "incorrect", "✗", "✘"),
    "unsure": ("unsure", "u", "?", "maybe"),
}
_LOCAL_WORDS = {
    "good": "ja j oui o sì si sí s sim tak да д так да ναι ν evet hai はい 是 对 對 예 네 نعم हाँ",
    "bad": "nein non não nie нет н ні όχι ό hayır h いいえ 否 不 아니요 لا नहीं",
}
"""Yes and no in other languages; single letters only if no other language means the opposite."""
_MEANINGS = {
    word: answer
    for words in (_WORDS, {key: value.split() for key, value in _LOCAL_WORDS.items()})
    for answer, some in words.items()
    for word in some
}
_NUMBER = re.compile(r"([01])\.0+")
_GUARD = re.compile(r"^'(?=[=+\-@])")
"""Mark that keeps a text from being a formula in CSV."""
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\ufeff\ufffe\uffff]")
_NAMED = 3
"""Maximum number of rows that a report names."""


def check_review(path: PathLike) -> str:
    """Return the format of a review sheet.

    Raises:
        ConfigError: its name is of another format.
    """
    found = stem_and_suffix(path)[1].removeprefix(".")
    if found not in _FORMATS:
        raise ConfigError(
            f"{path}: a review sheet must be .xlsx, .csv or .tsv; use one of these endings"
        )
    return found


@dataclass(slots=True, eq=False)
class ReviewItem:
    """A pair for the sheet.

    Attributes:
        value: probability, or the score where there is none.
        number: of the pair in all streams, from 1.
        position: of the pair in its own stream, from 1.
        row: the pair.
        file: of the stream; None if there is only one.
        details: explanations of the findings; None until ``ReviewSampler.explain``.
    """

    value: float
    number: int
    position: int
    row: PairRow
    file: str | None = None
    details: list[str] | None = None


class ReviewSampler:
    """Sampler of a review sheet's pairs from one or more streams.

    Memory holds no more pairs than a few sheets have.

    A third are the worst pairs, a third pairs with a finding of a check (of all checks in turn,
    the worst first), and the rest is a random sample of all. If there are no more pairs than rows,
    all pairs are shown.

    Args:
        rows: of the sheet at most.
        seed: of the sample.
    """

    def __init__(self, rows: int, seed: int = 0) -> None:
        self.rows = rows
        self.seen = 0
        self.worst: list[ReviewItem] = []
        self.found: defaultdict[str, list[ReviewItem]] = defaultdict(list)
        self.sample: list[ReviewItem] = []
        self._random = random.Random(seed)

    def noted(self, rows: Iterable[PairRow], file: str | None = None) -> Iterator[PairRow]:
        """Yield the rows of a stream, and examine each of them in passing.

        Args:
            rows: of the stream.
            file: of the rows, if there are several streams.
        """
        for position, row in enumerate(rows, 1):
            self._note(row, position, file)
            yield row

    def explain(self, checker: Checker) -> None:
        """Explain the findings of the pairs since the last call, while their checker is open."""
        for items in (self.worst, self.sample, *self.found.values()):
            for item in items:
                if item.details is None:
                    item.details = _details(item.row, checker)

    def _note(self, row: PairRow, position: int, file: str | None) -> None:
        self.seen += 1
        name = "probability" if _has_probability(row) else "score"
        item = ReviewItem(row.columns[name], self.seen, position, row, file)
        self._keep_worst(self.worst, item)
        for name in row.findings:
            self._keep_worst(self.found[name], item)
        # Reservoir sampling: each pair of the stream stays with the same probability.
        if len(self.sample) < self.rows:
            self.sample.append(item)
        elif (place := self._random.randrange(self.seen)) < self.rows:
            self.sample[place] = item

    def _keep_worst(self, items: list[ReviewItem], item: ReviewItem) -> None:
        items.append(item)
        # Sorting now and then is quicker than a heap that is kept in order all the time.
        if len(items) >= 4 * self.rows:
            items[:] = heapq.nsmallest(self.rows, items, key=_order)

    def chosen(self) -> list[tuple[ReviewItem, str]]:
        """Return the pairs of the sheet, the worst first, each with the reason of its choice."""
        third = max(1, self.rows // 3)
        found: dict[int, tuple[ReviewItem, str]] = {}

        def take(items: Iterable[ReviewItem], limit: int, name: str) -> None:
            for item in items:
                if len(found) >= limit:
                    return
                found.setdefault(item.number, (item, name))

        worst = sorted(self.worst, key=_order)
        take(worst, third, "worst")
        lists = [sorted(items, key=_order) for items in self.found.values()]
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*lists))
        take((item for item in in_turn if item is not None), 2 * third, "finding")
        # The sample is shuffled, because at first the reservoir is in the order of the stream.
        self._random.shuffle(self.sample)
        take(self.sample, self.rows, "sample")
        take(worst, self.rows, "worst")
        return sorted(found.values(), key=lambda pair: _order(pair[0]))


def _has_probability(row: PairRow) -> bool:
    """Return whether this run estimated a probability; the input may have one of another run."""
    return "probability" in row.columns and "probability" not in row.extra


def _order(item: ReviewItem) -> tuple[float, int]:
    return item.value, item.number


def write_review(path: PathLike, sampler: ReviewSampler, file: str | None) -> list[str]:
    """Write the sheet, which appears when it is complete.

    Args:
        path: .xlsx, .csv or .tsv.
        sampler: has seen all pairs, and explained them.
        file: of the pairs, if they do not name one.

    Returns:
        Lines on the sheet.
    """
    chosen = sampler.chosen()
    value = "score"
    if any(_has_probability(item.row) for item, _ in chosen):
        value = "probability"
    columns = [name for name in _WIDTHS if name not in {"score", "probability"} - {value}]
    form = SheetForm([_WIDTHS[name] for name in columns], {columns.index("answer"): ANSWERS})
    format = check_review(path)
    with _open_review(path, format, form) as write:
        write(columns)
        for item, picked in chosen:
            cells = _cells(item, value, file)
            cells["chosen"] = picked
            texts = [cells.get(name, "") for name in columns]
            if format != "xlsx":
                texts = [_guarded(cell) for cell in texts]
            write(texts)
    counts = f"{len(chosen):,} of {count_of(sampler.seen, 'pairs')}"
    # A calibration is learned from one bitext.
    learn = f", or learn from them: --labels {path} --learn CALIBRATION.json"
    if any(item.file is not None for item, _ in chosen):
        learn = ""
    return [
        f"review: {counts}, the worst first, in {path}; write good, bad or unsure in the column"
        f" answer, then apply the answers: --labels {path} -o OUTPUT{learn}"
    ]


@contextlib.contextmanager
def _open_review(path: PathLike, format: str, form: SheetForm) -> Iterator[WriteCells]:
    if format == "tsv":
        with open_text_writer(path) as file:
            yield tsv_writer(file)
        return
    with open_sheet(path, format, form) as write:
        yield write


def _cells(item: ReviewItem, value: str, file: str | None) -> dict[str, CellValue]:
    """Return the cells of a row by their columns."""
    pair = item.row.pair
    fields = pair_fields(pair)
    identifier = str(next((fields[name] for name in _ID_NAMES if fields.get(name)), ""))
    inner = str(next((fields[name] for name in _FILE_NAMES if fields.get(name)), ""))
    # With several files, answers are assigned by the file that was scored. Ids must be unique in
    # this file, but a file of XLIFF has units of several originals.
    if item.file is not None and identifier and inner:
        identifier = f"{inner}: {identifier}"
    return {
        "id": identifier,
        "file": item.file or inner or file or "",
        "position": item.position,
        "source": _short(pair.source),
        "target": _short(pair.target),
        value: round(item.value, 3),
        "reasons": "; ".join(item.details or ()),
    }


def _details(row: PairRow, checker: Checker) -> list[str]:
    """Return the reasons against a pair, those of checks with an explanation."""
    pair = row.pair
    texts = with_tags(pair.source, pair.target, pair_fields(pair))
    plain = (pair.source, pair.target)
    details = [
        checker.explain(name, *(texts if name == InlineTags.name else plain))
        for name in row.findings
    ]
    covered = {checker.reason_of(name) for name in row.findings}
    # A threshold and a probability are no checks, and have nothing to explain.
    return [*(reason for reason in row.reasons if reason not in covered), *details]


def _short(text: str) -> str:
    if len(text) <= _MAX_CELL:
        return text
    return f"{text[:_MAX_CELL]}…"


def _guarded(cell: CellValue) -> CellValue:
    """Return a cell of CSV that no spreadsheet takes for a formula."""
    if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS):
        return f"'{cell}"
    return cell


def judged_key(source: str, target: str) -> tuple[str, str]:
    """Return the key that a pair shares with its row of a sheet.

    Spreadsheets change line ends, drop characters that XML does not allow, and hold only the
    start of a very long text.
    """
    return _text_key(source), _text_key(target)


def _text_key(text: str) -> str:
    text = _GUARD.sub("", text.strip())
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    return " ".join(_INVISIBLE.sub("", text[:_MAX_CELL]).split())


@dataclass(frozen=True, slots=True)
class Judgments:
    """Answers to pairs.

    Attributes:
        answers: source and target -> whether they are translations.
        places: source and target -> where the answer is, in words.
        notes: lines on omitted pairs.
        shared: answers to pairs of any file, for those without an answer here.
        matched: keys of the answers that ``answer`` has returned.
    """

    answers: dict[tuple[str, str], bool]
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    shared: Judgments | None = None
    matched: set[tuple[str, str]] = field(default_factory=set)
    _keyed: dict[tuple[str, str], bool] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keyed = {judged_key(*texts): answer for texts, answer in self.answers.items()}
        object.__setattr__(self, "_keyed", keyed)

    def answer(self, source: str, target: str) -> bool | None:
        """Return the answer to a pair, or None; an answer that is found counts as matched."""
        key = judged_key(source, target)
        found = self._keyed.get(key)
        if found is not None:
            self.matched.add(key)
        elif self.shared is not None and self.shared.answers:
            return self.shared.answer(source, target)
        return found

    def unmatched(self) -> list[str]:
        """Return a line on the answers whose pairs did not occur."""
        lost = [texts for texts in self.answers if judged_key(*texts) not in self.matched]
        if not lost:
            return []
        named = [self.places[texts] for texts in lost[:_NAMED] if texts in self.places]
        where = f" ({', '.join(named)}{' ...' if len(lost) > len(named) else ''})" if named else ""
        return [
            f"warning: {count_of(len(lost), 'judged pairs')} of {len(self.answers):,} not found"
            f" in the bitext{where}; check whether their texts were changed"
        ]


def read_labels(path: Path) -> Judgments:
    """Read judged pairs: an answered review sheet, or lines of 1 or 0 TAB source TAB target.

    Rows of a sheet without an answer, and those that someone is unsure about, are left out and
    counted.

    Raises:
        DataError: there is no answer, or an answer is not a known word.
    """
    rows = _sheet_rows(path)
    if rows is not None:
        return _answered(rows, path)[""]
    labeled = labeled_rows(path, "binary", layout=PairLayout(width=3))
    return Judgments({(row.a.strip(), row.b.strip()): row.label == 1 for row in labeled})


def read_labels_by_file(path: Path) -> dict[str, Judgments]:
    """Read judged pairs of several bitexts; see ``read_labels``.

    Returns:
        The answers by the column ``file`` of the sheet. Answers without a file have an empty name
        and apply to all files.
    """
    rows = _sheet_rows(path)
    if rows is not None:
        return _answered(rows, path, by_file=True)
    return {"": read_labels(path)}


class Judging(NamedTuple):
    """The sheet and the answers of a run on one or several bitexts.

    Attributes:
        sampler: chooses the pairs of the sheet; None without a sheet.
        answers: by file; see ``read_labels_by_file``.
    """

    sampler: ReviewSampler | None
    answers: Mapping[str, Judgments]

    @classmethod
    def of(cls, rows: int | None, labels: Path | None, *, by_file: bool = False) -> Judging:
        """Begin a sheet of some rows, and read the answers.

        Args:
            rows: of the sheet at most; None without a sheet.
            labels: see ``read_labels``; None without answers.
            by_file: there are several bitexts.
        """
        answers: dict[str, Judgments] = {}
        if labels is not None:
            answers = read_labels_by_file(labels) if by_file else {"": read_labels(labels)}
        return cls(None if rows is None else ReviewSampler(rows), answers)

    def judgments(self, file: str | None) -> Judgments | None:
        """Return the answers to the pairs of a file; ``file`` is None for the only bitext."""
        shared = self.answers.get("")
        if file is None or not self.answers:
            return shared
        own = self.answers.get(file, Judgments({}))
        # The notes on the sheet are reported once, for all files.
        return Judgments(own.answers, own.places, shared=shared)

    def report(self, files: Collection[str], *, is_whole: bool) -> list[str]:
        """Return lines on the answers of several files.

        Args:
            files: that were scored, or finished before.
            is_whole: whether this run scored all of them; then answers without a pair are reported.
        """
        lines = [*next((one.notes for one in self.answers.values()), ())]
        if is_whole and "" in self.answers:
            lines += self.answers[""].unmatched()
        strange = sorted(self.answers.keys() - {"", *files})
        if strange:
            pairs = sum(len(self.answers[name].answers) for name in strange)
            named = ", ".join(strange[:_NAMED]) + (", ..." if len(strange) > _NAMED else "")
            lines.append(
                f"warning: {count_of(pairs, 'judged pairs')} of files that are not scored: {named};"
                " check the column file of the sheet"
            )
        return lines


def _sheet_rows(path: Path) -> Iterator[tuple[int, list[str]]] | None:
    """Return the rows of a review sheet with their numbers, or None for lines with labels."""
    suffix = stem_and_suffix(path)[1]
    if suffix in (".xlsx", ".xlsm"):
        return workbook.read_rows(str(path))
    if suffix == ".csv":
        return _csv_rows(path)
    rows = tab_rows(path)
    first = next(rows, None)
    if first is not None and "answer" in map(folded_name, first[1]):
        return itertools.chain([first], rows)
    rows.close()  # type: ignore[attr-defined]
    return None


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    with open_text(path) as lines:
        yield from csv_rows(lines, str(path), BadLines())


class _Answers:
    """Answers of a review sheet to the pairs of one file, or of all."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], bool] = {}
        self.places: dict[tuple[str, str], str] = {}
        self.contradicted: list[str] = []

    def add(self, texts: tuple[str, str], is_good: bool, number: int) -> None:
        """Add the answer of a row; a second one to the same pair does not count."""
        if self.answers.setdefault(texts, is_good) != is_good:
            self.contradicted.append(f"{self.places[texts]} and row {number}")
        else:
            self.places.setdefault(texts, f"row {number}")


def _answered(
    rows: Iterator[tuple[int, list[str]]], path: Path, *, by_file: bool = False
) -> dict[str, Judgments]:
    """Return the answers of a review sheet by file, or all of them under an empty name."""
    header = [folded_name(cell) for cell in next(rows, (0, [""]))[1]]
    for name in ("source", "target", "answer"):
        if name not in header:
            raise DataError(
                f"no column {name}; its columns are: {', '.join(header)}; use a review sheet that"
                " `interlingua score --review` wrote",
                path=path,
                line=1,
            )
    source, target, answer = (header.index(name) for name in ("source", "target", "answer"))
    file = header.index("file") if by_file and "file" in header else None
    found: defaultdict[str, _Answers] = defaultdict(_Answers)
    blank = unsure = 0
    for number, cells in rows:
        # Spreadsheets may drop empty cells at the end of a row.
        cells = cells + [""] * (len(header) - len(cells))
        meaning = _meaning(cells[answer], path, number, answer)
        texts = (_GUARD.sub("", cells[source].strip()), _GUARD.sub("", cells[target].strip()))
        if meaning == "":
            blank += any(texts)
        elif meaning == "unsure":
            unsure += 1
        else:
            name = "" if file is None else _GUARD.sub("", cells[file].strip())
            found[name].add(texts, meaning == "good", number)
    for text in itertools.chain.from_iterable(one.contradicted for one in found.values()):
        log.warning(
            "%s: %s contain different answers for the same pair; the first answer is used",
            path,
            text,
        )
    if not found:
        raise DataError(
            f"no row has the answer good or bad ({unsure:,} unsure, {blank:,} blank); fill in the"
            " column answer",
            path=path,
        )
    good = sum(sum(one.answers.values()) for one in found.values())
    bad = sum(len(one.answers) for one in found.values()) - good
    note = (
        f"labels: {good:,} good, {bad:,} bad; left out: {unsure:,} unsure,"
        f" {blank:,} without an answer"
    )
    return {name: Judgments(one.answers, one.places, [note]) for name, one in found.items()}


def _meaning(cell: str, path: Path, row: int, column: int) -> str:
    """Return good, bad, unsure, or an empty text for an empty cell."""
    word = unicodedata.normalize("NFKC", cell).strip().casefold().strip(".!")
    if not word:
        return ""
    # A workbook holds 1 as the number 1.0, and a table may hold it in digits of another script.
    word = _NUMBER.sub(r"\1", "".join(str(unicodedata.digit(c, c)) for c in word))
    if word not in _MEANINGS:
        where = f"cell {chr(ord('A') + column)}{row}" if column < 26 else f"row {row}"
        raise DataError(
            f"{where}: unknown answer {cell[:40]!r}; use one of: good, bad, unsure (or yes, no,"
            " y, n, 1, 0)",
            path=path,
        )
    return _MEANINGS[word]
