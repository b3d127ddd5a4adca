"""docs/how-to/score.md and align.md: their commands run in the order of the pages on tiny texts."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import openpyxl
import pytest

from interlingua.alignment import sentence_alignment
from interlingua.alignment.align import read_links
from interlingua.config.registry import CHECKS
from interlingua.corpus.formats.bitext import read_pairs, write_pairs
from interlingua.mining.defaults import GLOSSARY, RULES
from tests.alignment import test_sentence_alignment
from tests.alignment.test_align import written
from tests.docs.markdown import follow, run_python
from tests.mining.test_score import bitext
from tests.mining.test_score_learning import is_right
from tests.tiny import tiny_encoder

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCORE = DOCS / "how-to" / "score.md"
METHOD = DOCS / "methods" / "alignment.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("guides")
    tiny_encoder(word_vocabulary).save(folder / "model")
    noisy = bitext(200, wrong=0.4, repeated=0)
    write_pairs(noisy, folder / "noisy.de-en.tsv")
    write_pairs(bitext(60, seed=7, wrong=0, repeated=0), folder / "trusted.de-en.tsv")
    judged = "".join(
        f"{int(is_right(pair))}\t{pair.source}\t{pair.target}\n" for pair in noisy[:120]
    )
    (folder / "judged.tsv").write_text(judged, encoding="utf-8")
    terms = re.search(r"^de,en\n.*?(?=^```)", SCORE.read_text(encoding="utf-8"), re.M | re.S)[0]
    (folder / "terms.csv").write_text(terms, encoding="utf-8")
    book = openpyxl.Workbook()
    book.active.append(["source", "target", "answer"])
    for pair in noisy[:120]:
        book.active.append([pair.source, pair.target, "good" if is_right(pair) else "bad"])
    book.save(folder / "answered.xlsx")
    for seed in (1, 2):
        written(folder, seed, 20)
    for name, path in (
        ("1.de", "chapter.de.txt"),
        ("1.en", "chapter.en.txt"),
        ("1.gold", "chapter.gold"),
    ):
        (folder / name).rename(folder / path)
    for code in ("de", "en"):
        (folder / code).mkdir()
        shutil.copy(folder / f"chapter.{code}.txt", folder / code / "chapter.txt")
    rows = "chapter.de.txt\tchapter.en.txt\t\tchapter.gold\n2.de\t2.en\n"
    (folder / "documents.tsv").write_text(rows, encoding="utf-8")
    return folder


def test_score(workplace, capsys):
    done = follow(
        DOCS / "how-to" / "score.md",
        workplace,
        instead={"hf:intfloat/multilingual-e5-small": "model"},
        opening=False,
    )
    assert len(done) == 9
    kept, rest = (
        (workplace / name).read_text(encoding="utf-8").splitlines()
        for name in ("clean.tsv", "rest.tsv")
    )
    assert len(kept) + len(rest) == 200
    assert {line.split("\t")[0] for line in rest} <= {
        "below the threshold",
        "numbers differ",
        "below the threshold, numbers differ",
    }
    known = json.loads((workplace / "de-en.json").read_text(encoding="utf-8"))["pairs"]
    assert known["deu_Latn-eng_Latn"]["basis"] == "labels"
    checked = (workplace / "checked.tsv").read_text(encoding="utf-8").splitlines()
    assert all(len(line.split("\t")) == 5 for line in checked)
    rows = list(openpyxl.load_workbook(workplace / "review.xlsx").active.values)
    assert rows[0][-1] == "answer"
    assert len(rows) == 201
    messages = (workplace / "messages.jsonl").read_text(encoding="utf-8").splitlines()
    assert {*RULES, GLOSSARY} <= set(json.loads(messages[0]))
    assert "pairs/s" in capsys.readouterr().err


@pytest.mark.parametrize(("page", "name"), [("score", "kept"), ("align", "source")])
def test_the_python_parts_run(workplace, monkeypatch, page, name):
    (workplace / "my_code.py").write_text("from tests.mining.words import embed as embed\n")
    monkeypatch.setattr(sys, "path", [str(workplace), *sys.path])
    monkeypatch.delitem(sys.modules, "my_code", raising=False)  # another guide's
    names = run_python(DOCS / "how-to" / f"{page}.md", workplace)
    assert len(names[name]) > 10


def test_align(workplace, capsys):
    done = follow(
        DOCS / "how-to" / "align.md",
        workplace,
        instead={
            "hf:intfloat/multilingual-e5-small": "model",
            "align chapter.de.txt": "align model chapter.de.txt",
        },
    )
    assert len(done) == 5
    assert read_links(workplace / "chapter.align")
    assert sorted(path.name for path in (workplace / "links").iterdir()) == [
        "2.de.align",
        "chapter.de.txt.align",
        "chapter.txt.align",
    ]
    pairs = list(read_pairs(workplace / "bitext.tsv", source_language="de", target_language="en"))
    assert pairs[0].score is not None
    assert "strict: precision" in capsys.readouterr().err


def test_all_checks_of_the_page_are_there():
    page = (DOCS / "how-to" / "score.md").read_text(encoding="utf-8")
    assert {"duplicate", "hub", "script", "copied", "length", "numbers"} <= {
        name for name in CHECKS if name in page
    }


def test_the_method_names_functions_and_tests_that_are_there():
    table = METHOD.read_text(encoding="utf-8").split("## Differences from the paper")[0]
    for name in re.findall(r"`(test_\w+)`", table):
        assert hasattr(test_sentence_alignment, name), name
    for name in (
        "costs",
        "sides_of",
        "mean_block",
        "skip_cost",
        "find_best_path",
        "link_costs",
        "doubtful_blocks",
        "halve",
        "band_around",
        "path_of",
        "align_blocks",
    ):
        assert f"`{name}`" in table
        assert hasattr(sentence_alignment, name)
    assert hasattr(sentence_alignment, "LinkCounts")
