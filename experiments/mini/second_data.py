"""Write the questions and scored pairs of the second edition, and list their licenses.

    python experiments/mini/second_data.py $INTERLINGUA_DATA --scored data/mini -o data/second

``INTERLINGUA_DATA`` has the folders of ``SETS`` (docs/data.md says where each comes from), and
``--scored`` is what scored_pairs.py has written. Sets that are not there are named and left out, so
that a part of the data is enough to try. OUT gets

- ``questions.json``: questions, or headings, with their passages, in DPR's form with the language
  of each side; hard_passages.py adds the teacher's hard passages;
- ``questions_dev.json``: the same of passages that are not in ``questions.json`` in any language,
  with all versions of the passage in ``positive_ctxs``, for development.py;
- ``scored.tsv`` and ``scored_dev.tsv``: score, text, text;
- ``triplets.json``: premises as questions, with an entailed sentence as the passage and the
  contradicting sentences, if any, as hard negatives; read by a trial of second_scores.toml only;
- ``sources.json``: the sets used, with licenses and counts, for the card.

Passages of questions have no title, so that a question has to find its passage by the text. A
heading is a question to the passage below it, in another language: manuals are aligned across
languages. A share of the Finnish questions gets the passage of SQuAD in English. A set is used to
at most ``--most`` questions of a language, manuals to a quarter of that, and at most ``--headings``
headings are used in all. Items with a text of a test set (``TESTS``) are left out and counted.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.errors import DataError, InterlinguaError
from interlingua.storage.files import atomic_write

SEED = 0
ACROSS = 0.3
"""Share of Finnish questions that get a passage in another language."""
DEVELOPMENT = 0.03
"""Share of scored pairs that are kept for development."""
DEVELOPMENT_SETS = {"qa_wikipedia": 40, "help_gnome_apps": 30, "docs_vue": 15}
"""Sets with passages for development -> one of this number of passages is kept for it."""
DEVELOPMENT_QUESTIONS = 60
"""Questions for development, per set and language."""
SHORTEST_HEADING = 8
"""Letters of a heading that asks for something."""
TYDI_PASSAGES, TYDI_QUESTIONS = "en.train.passages.txt", "en.train.questions.tsv"
"""Files of TyDi GoldP for training: passages, and rows of number, passage's line, question."""


@dataclass(frozen=True)
class DataSet:
    """A folder of questions or passages."""

    name: str
    license: str
    is_manual: bool = False
    """One narrow domain, to be weighed down."""
    machine_translated: bool = False
    withheld: str = ""
    """Part of it that may not be in a shipped model, and the reason."""


SETS = (
    DataSet(
        "qa_wikipedia",
        "CC-BY-SA, CC-BY, CC0, MIT by language",
        withheld="Pirá (ids in English and Portuguese), because it quotes abstracts of Scopus",
    ),
    DataSet("qa_squad_fi_en", "CC-BY-SA 4.0", machine_translated=True),
    DataSet("qa_nq_fi", "CC-BY-SA 3.0", machine_translated=True),
    DataSet("tydiqa_goldp", "Apache-2.0, passages CC-BY-SA"),
    DataSet("stories", "CC-BY"),
    DataSet("sky_cultures", "CC-BY-SA or CC-BY"),
    DataSet("docs_opensource_guide", "CC-BY 4.0", is_manual=True),
    DataSet("docs_privacyguides", "CC-BY-SA 4.0", is_manual=True),
    DataSet("help_libreoffice", "MPL-2.0", is_manual=True),
    DataSet("help_gimp", "GFDL 1.2 or later", is_manual=True),
    DataSet("help_mate", "GFDL 1.1 or later", is_manual=True),
    DataSet("help_kde", "GFDL 1.2 or later", is_manual=True),
    DataSet("help_gnome", "CC-BY-SA 3.0", is_manual=True),
    DataSet("help_gnome_apps", "CC-BY-SA 3.0 or GFDL 1.1 or later", is_manual=True),
    DataSet("book_debian_handbook", "CC-BY-SA 3.0", is_manual=True),
    DataSet("docs_vue", "CC-BY 4.0, translations MIT", is_manual=True),
    DataSet("docs_hf_course", "Apache-2.0", is_manual=True),
    DataSet("docs_monero", "BSD-3-Clause", is_manual=True),
)
SCORED = {
    "sts_jsts.ja": 1.0,
    "sts_klue.ko": 1.0,
    "sts_turku.fi": 0.3,
    "sts_turku.sv": 1.0,
    "qe_mlqe.en-de": 0.1,
    "qe_mlqe.en-zh": 0.1,
    "qe_mlqe.et-en": 0.1,
    "qe_mlqe.ro-en": 0.1,
    "qe_mlqe.ru-en": 0.1,
}
"""Files of ``scored_pairs`` -> share of their pairs; grades of translations count little. STS17 was
drawn from SNLI, so ``nli_snli`` is not among them."""
TESTS = (
    *("tatoeba_laser", "flores200_devtest", "sts17", "bucc2018_zh_en", "xquad", "xquad_r"),
    *("stsb/*.dev.tsv", "stsb/*.test.tsv", "tydiqa_goldp/*.dev.*"),
)
"""Folders and files of test and development sets, of which no text may be trained on."""
INFERENCES = ("nli_indonli.id", "nli_klue.ko", "nli_jnli.ja", "nli_farstail.fa")
"""Files of ``scored_pairs`` with premises of the triplets; without ``nli_snli``, as above."""
Item = dict[str, Any]
Trained = TypeVar("Trained")
"""A question, or a line of a scored pair."""


def main(arguments: list[str] | None = None) -> None:
    """Read the command line. Report a user's error in one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with the sets")
    parser.add_argument("--scored", type=Path, required=True, help="output of scored_pairs.py")
    parser.add_argument("--most", type=int, default=1_100, help="questions of a set and language")
    parser.add_argument("--headings", type=int, default=4_000, help="headings of all sets")
    parser.add_argument(
        "--without-machine-translated", action="store_true", help="leave those sets out"
    )
    parser.add_argument(
        "--with-withheld", action="store_true", help="take what must not be shipped, for a study"
    )
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        write_all(given)
    except InterlinguaError as error:
        sys.exit(f"second_data.py: {error}")


def write_all(given: argparse.Namespace) -> None:
    """Write all files; ``sources.json`` is last, so that it implies the others.

    Raises:
        DataError: none of the sets is there.
    """
    items: dict[str, list[Item]] = {}
    headings: list[tuple[str, Item]] = []
    development_items: list[Item] = []
    used: list[DataSet] = []
    for chosen in SETS:
        folder = given.data / chosen.name
        if not folder.is_dir():
            print(f"{chosen.name}: not in {given.data}, left out")
            continue
        if chosen.machine_translated and given.without_machine_translated:
            print(f"{chosen.name}: machine-translated, left out")
            continue
        found, held_out = questions_of(
            folder, chosen, most=given.most, withheld=given.with_withheld
        )
        development_items += held_out
        used.append(chosen)
        items[chosen.name] = [] if has_headings(folder) else found
        if has_headings(folder):
            headings += [(chosen.name, item) for item in found]
    random.Random(SEED).shuffle(headings)
    for name, item in headings[: given.headings]:
        items[name].append(item)
    tests = [path for pattern in TESTS for path in sorted(given.data.glob(pattern))]
    test_keys = EvaluationKeys.from_folders(tests)
    for name, some in items.items():
        items[name] = without_test_texts(some, test_keys, texts_of_item, name)
        print(f"{name}: {len(items[name]):,} questions")
    development_items = without_test_texts(
        development_items, test_keys, texts_of_item, "questions for development"
    )
    questions = [item for some in items.values() for item in some]
    if not questions:
        raise DataError("none of the sets is here; see docs/data.md", path=given.data)
    random.Random(SEED).shuffle(questions)
    given.output.mkdir(parents=True, exist_ok=True)
    for name, some in (("questions.json", questions), ("questions_dev.json", development_items)):
        with atomic_write(given.output / name) as file:
            json.dump(some, file, ensure_ascii=False)
    train, development = scored_pairs(given.data / "scored_pairs", given.scored / "train.tsv")
    train = without_test_texts(train, test_keys, texts_of_line, "scored pairs")
    development = without_test_texts(
        development, test_keys, texts_of_line, "scored pairs for development"
    )
    for name, lines in (("scored.tsv", train), ("scored_dev.tsv", development)):
        with atomic_write(given.output / name) as file:
            file.writelines(lines)
    triplets = triplets_of(given.data / "scored_pairs")
    triplets = without_test_texts(triplets, test_keys, texts_of_item, "triplets")
    with atomic_write(given.output / "triplets.json") as file:
        json.dump(triplets, file, ensure_ascii=False)
    with atomic_write(given.output / "sources.json") as file:
        sources = [{**vars(one), "questions": len(items[one.name])} for one in used]
        sources = [source for source in sources if source["questions"]]
        json.dump(sources, file, ensure_ascii=False, indent=1)
    languages = Counter(item["language"] for item in questions)
    print(f"{len(questions):,} questions in {len(languages)} languages: {dict(languages)}")
    print(f"{len(train):,} scored pairs, {len(development):,} for development")
    print(f"{len(triplets):,} triplets of premises")


def questions_of(
    folder: Path, chosen: DataSet, *, most: int, withheld: bool
) -> tuple[list[Item], list[Item]]:
    """Return the questions of a set, up to a number per language, and those for development."""
    passages = {path: read_passages(path) for path in sorted(folder.glob("*.tsv"))}
    by_language = {
        path.name.split(".")[0]: rows
        for path, rows in passages.items()
        if not path.name.endswith(".questions.tsv")
    }
    if (folder / TYDI_QUESTIONS).is_file():
        found = tydi_questions(folder)
    elif not has_headings(folder):
        found = questions_with_passages(sorted(folder.glob("*.questions.tsv")), by_language)
        if not withheld and chosen.withheld:
            # The ids of the withheld part are those that both languages have.
            both = by_language.get("en", {}).keys() & by_language.get("pt", {}).keys()
            found = (one for one in found if one[0] not in both)
    else:
        found = headings_with_passages(by_language)
    kept: dict[str, list[tuple[str, Item]]] = defaultdict(list)
    for number, item in found:
        kept[item["language"]].append((number, item))
    limit = most // 4 if chosen.is_manual else most
    one_of = DEVELOPMENT_SETS.get(chosen.name, 0)
    train: list[Item] = []
    development: list[Item] = []
    for language, items in sorted(kept.items()):
        draw = random.Random(f"{chosen.name} {language}")
        drawn = draw.sample(items, min(limit, len(items)))
        train += [item for number, item in drawn if not is_held_out(number, one_of)]
        held_out = [one for one in items if is_held_out(one[0], one_of)]
        for number, item in held_out[:DEVELOPMENT_QUESTIONS]:
            versions = [
                {
                    "title": "",
                    "text": rows[number][2],
                    "language": code_of(name),
                }
                for name, rows in by_language.items()
                if number in rows
            ]
            development.append({**item, "set": chosen.name, "positive_ctxs": versions})
    return train, development


def has_headings(folder: Path) -> bool:
    """Return whether a set has passages with headings, and no questions."""
    return not any(folder.glob("*.questions.tsv"))


def tydi_questions(folder: Path) -> Iterator[tuple[str, Item]]:
    """Yield the passage's line with each of TyDi's English training questions."""
    passages = (folder / TYDI_PASSAGES).read_text(encoding="utf-8").splitlines()
    for _, number, question, *_ in rows_of(folder / TYDI_QUESTIONS):
        yield number, item_of(question, "en", passages[int(number)], "en")


def is_held_out(number: str, one_of: int) -> bool:
    """Return whether a passage is for development, in all languages: one of a number is."""
    return bool(one_of) and zlib.crc32(number.encode()) % one_of == 0


def read_passages(path: Path) -> dict[str, tuple[str, str, str]]:
    """Read passages: id -> title, heading and passage. A file of questions has no headings."""
    if path.name.endswith(".questions.tsv"):
        return {}
    rows = {}
    for cells in rows_of(path):
        if len(cells) >= 3:
            heading = cells[2] if len(cells) > 3 else ""
            # JSQuAD puts the title and a sign before each passage.
            rows[cells[0]] = (cells[1], heading, cells[-1].split(" [SEP] ")[-1])
    return rows


def questions_with_passages(
    paths: Iterable[Path], passages: dict[str, dict[str, tuple[str, str, str]]]
) -> Iterator[tuple[str, Item]]:
    """Yield the passage's id with each question; some Finnish ones get the English passage."""
    draw = random.Random(SEED)
    for path in paths:
        language = path.name.split(".")[0]
        for of_passage, number, question in (cells[:3] for cells in rows_of(path)):
            target = of_passage
            if language == "fi" and number in passages.get("en", {}) and draw.random() < ACROSS:
                target = "en"
            found = passages.get(target, {}).get(number)
            if found is not None:
                yield number, item_of(question, language, found[2], target)


def headings_with_passages(
    passages: dict[str, dict[str, tuple[str, str, str]]],
) -> Iterator[tuple[str, Item]]:
    """Yield each heading with its passage in another language."""
    draw = random.Random(SEED)
    languages = sorted(passages)
    for language in languages:
        for number, (title, heading, passage) in passages[language].items():
            question = ": ".join(part for part in dict.fromkeys((title, heading)) if part)
            others = [one for one in languages if number in passages[one] and one != language]
            if len(question) < SHORTEST_HEADING or question in passage or not others:
                continue
            target = draw.choice(others)
            yield number, item_of(question, language, passages[target][number][2], target)


def item_of(question: str, language: str, passage: str, target: str) -> Item:
    """Return a question in DPR's form, with the languages of both sides."""
    context = {"title": "", "text": passage, "language": code_of(target)}
    return {
        "question": question,
        "language": code_of(language),
        "answers": [],
        "positive_ctxs": [context],
    }


def code_of(language: str) -> str:
    """Return the full code of a file's language; ``pt_BR`` is Portuguese."""
    return resolve_language(language.partition("_")[0]).code


def scored_pairs(folder: Path, own: Path) -> tuple[list[str], list[str]]:
    """Return lines of score and texts to train on, and those for development."""
    train: list[str] = []
    development: list[str] = []
    if own.is_file():
        train += [f"{line}\n" for line in own.read_text(encoding="utf-8").splitlines()]
    for name, share in SCORED.items():
        path = folder / f"{name}.tsv"
        if not path.is_file():
            print(f"scored_pairs/{path.name}: not there, left out")
            continue
        draw = random.Random(name)
        for cells in rows_of(path):
            if len(cells) == 3 and draw.random() < share:
                kept = development if draw.random() < DEVELOPMENT else train
                kept.append("\t".join(cells) + "\n")
    random.Random(SEED).shuffle(train)
    return train, development


def triplets_of(folder: Path) -> list[Item]:
    """Return each entailed sentence as the passage of its premise.

    Sentences that contradict the premise are its hard negatives.
    """
    triplets: list[Item] = []
    for name in INFERENCES:
        path = folder / f"{name}.tsv"
        if not path.is_file():
            print(f"scored_pairs/{path.name}: not there, left out")
            continue
        language = name.rpartition(".")[2]
        by_premise: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for cells in rows_of(path):
            if len(cells) == 3:
                label, premise, hypothesis = cells
                by_premise[premise][label].append(hypothesis)
        for premise, by_label in by_premise.items():
            contradictions = [
                {"title": "", "text": text, "language": code_of(language)}
                for text in by_label["contradiction"]
            ]
            triplets += [
                {
                    **item_of(premise, language, text, language),
                    "hard_negative_ctxs": contradictions,
                }
                for text in by_label["entailment"]
            ]
    random.Random(SEED).shuffle(triplets)
    return triplets


def without_test_texts(
    items: list[Trained],
    test_keys: EvaluationKeys,
    texts_of: Callable[[Trained], list[str]],
    name: str,
) -> list[Trained]:
    """Return the items of which no text is in a test set, and print the number of the others.

    Args:
        items: questions, or lines of scored pairs.
        test_keys: sentences of the test sets.
        texts_of: returns the texts of an item.
        name: of the items, to print.
    """
    texts = [texts_of(item) for item in items]
    found = test_keys.contaminated_keys(text_keys([text for some in texts for text in some]))
    ends = np.cumsum([len(some) for some in texts])
    is_known = [bool(part.any()) for part in np.split(found, ends)[: len(items)]]
    kept = [item for item, known in zip(items, is_known, strict=True) if not known]
    if len(kept) < len(items):
        print(f"{name}: {len(items) - len(kept):,} with a text of a test set left out")
    return kept


def texts_of_item(item: Item) -> list[str]:
    """Return a question and its passages."""
    contexts = [*item["positive_ctxs"], *item.get("hard_negative_ctxs", ())]
    return [item["question"], *(context["text"] for context in contexts)]


def texts_of_line(line: str) -> list[str]:
    """Return the two sentences of a scored pair."""
    return line.rstrip("\n").split("\t")[1:]


def rows_of(path: Path) -> Iterator[list[str]]:
    """Yield the cells of each line."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


if __name__ == "__main__":
    main()
