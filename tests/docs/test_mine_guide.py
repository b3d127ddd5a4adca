"""docs/how-to/mine.md: its commands run in their order on invented words.

Its table names every check.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from interlingua.cli import main
from interlingua.config.registry import CHECKS
from interlingua.mining.checks import Pairs, find_check
from interlingua.mining.defaults import DEFAULT_CHECKS, GLOSSARY
from tests.docs.markdown import follow, run_python
from tests.mining.cluster import two_workers
from tests.mining.invented import corpora, sentence, text, write_lines

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "mine.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    sources, targets, pairs = corpora(60, 100)
    write_lines(folder / "news.de.txt", sources)
    write_lines(folder / "news.en.txt", targets)
    for code, texts in (("de", sources), ("en", targets)):
        (folder / code).mkdir()
        for part in (0, 1):
            write_lines(folder / code / f"news{part}.txt", texts[part::2])
    for name, texts in (("dev.de", sources), ("dev.en", targets)):
        write_lines(folder / name, [f"{name[4:]}-{n}\t{one}" for n, one in enumerate(texts)])
    write_lines(folder / "dev.gold", [f"de-{a}\ten-{b}" for a, b in pairs])
    for language, texts in (("de", sources), ("en", targets)):
        pages = [f"http://a.org/{language}/{n % 4}\t{one}" for n, one in enumerate(sorted(texts))]
        write_lines(folder / f"crawl.{language}.tsv", pages)
    draw = random.Random(5)
    held_out = [sentence(draw) for _ in range(300)]
    write_lines(
        folder / "heldout.de-en.tsv", [f"{text(one, 'de')}\t{text(one, 'en')}" for one in held_out]
    )
    (folder / "my_code.py").write_text("from tests.mining.invented import embed as embed\n")
    return folder


def unfiltered(folder):
    """Write the pairs of one process without calibration."""
    command = "mine tests.mining.invented:embed news.de.txt news.en.txt -o alone.tsv"
    with contextlib.chdir(folder), pytest.raises(SystemExit):
        main.main([*command.split(), "--backend", "function", "--quiet"])
    return (folder / "alone.tsv").read_bytes()


@pytest.fixture(scope="module")
def said(workplace):
    """Command -> output."""
    pytest.importorskip("faiss")
    with two_workers(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr("interlingua.mining.vectors.PORTION", 40)
        patch.setattr("interlingua.retrieval.topk.speed.TRIED_VECTORS", 256)
        instead = {"runs/ems/model": "tests.mining.invented:embed", "--drop language,": "--drop "}
        instead |= {"dev.zh": "dev.de"}  # invented words are in Latin letters
        extra = ("--backend", "function", "--quiet")
        return follow(GUIDE, workplace, extra=extra, instead=instead, opening=False)


def test_every_command_runs(said, workplace):
    pytest.importorskip("py3langid")  # --check all
    assert len(said) == 16
    printed = list(said.values())
    assert "nearest neighbors: " in printed[3]
    assert "calibration error (ECE)" in printed[4]
    assert "precision 0.90" in printed[5]
    assert "of 4 matches name documents of both sides" in printed[7]
    assert "shard 2/2 is finished" in printed[9]
    assert "best F1 100.00" in printed[15] or "best F1 9" in printed[15]
    assert len(np.load(workplace / "news.de.npy")) == 160
    assert (workplace / "shared.tsv").read_bytes() == unfiltered(workplace)
    assert "approximate neighbors (ivf:64): recall@4 1.0000" in printed[14]
    assert (workplace / "pairs.html").is_file()
    assert len(list((workplace / "mined").glob("*.tsv"))) == 2
    first = (workplace / "all.tsv").read_text().splitlines()[0].split("\t")
    assert first[3].partition(":")[0] in ("news0.txt", "news1.txt")
    rows = [json.loads(line) for line in (workplace / "pairs.jsonl").read_text().splitlines()]
    assert set(CHECKS) - {GLOSSARY} <= set(rows[0])


def test_the_python_part_runs(said, workplace, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(workplace), *sys.path])
    monkeypatch.delitem(sys.modules, "my_code", raising=False)  # another guide's
    names = run_python(GUIDE, workplace)
    pairs = Pairs(["ABc", "abcd"], ["x", "y"], np.zeros(2))
    assert names["Capitals"](("", ""), workplace).score(pairs).tolist() == pytest.approx([2 / 3, 0])
    assert len(names["found"]) > 50
    assert len(names["unchecked"]) > len(names["found"])
    rows = [json.loads(line) for line in (workplace / "python.jsonl").read_text().splitlines()]
    assert len(rows) == names["mined"].written.pairs > 50
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_the_table_names_every_check_and_its_limit():
    table = {
        line.split("`")[1]: line
        for line in GUIDE.read_text(encoding="utf-8").splitlines()
        if line[:3] == "| `"
    }
    assert list(table) == list(CHECKS)
    for name in CHECKS:
        rule = find_check(name)
        limit = (
            f"from {rule.default_limit:g} on"
            if rule.is_upper_limit
            else f"below {rule.default_limit:g}"
        )
        assert limit in table[name]
        assert ("if requested" in table[name]) == (name not in DEFAULT_CHECKS)


def test_the_methods_page_names_what_is_there():
    page = (DOCS / "methods" / "mining.md").read_text(encoding="utf-8")
    for line in page.splitlines():
        for name in line.split("`")[1::2] if line.startswith("| ") else []:
            if name.startswith("tests/"):
                assert (DOCS.parent / name).is_file(), name
