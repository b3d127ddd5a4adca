from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tools import make_monolingual as tool

ROOT = Path(__file__).resolve().parents[2]


def pack(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_the_side_of_wikimatrix_that_is_the_language(tmp_path, capsys):
    folder = tmp_path / "WikiMatrix"
    pack(folder / "WikiMatrix.en-ru.tsv.gz", "1.1\tone\tодин\n1.05\ttwo\tдва\n1.04\ttoo\tдва\n")
    pack(folder / "WikiMatrix.ja-ru.tsv.gz", "1.2\t三\tтри\n")
    pack(folder / "WikiMatrix.en-sw.tsv.gz", "1.2\tfour\tnne\n")
    tool.main([str(folder), "--languages", "ru", "sw", "th", "--out", str(tmp_path / "out")])
    assert sorted(lines(tmp_path / "out" / "ru.txt")) == ["два", "один", "три"]
    assert lines(tmp_path / "out" / "sw.txt") == ["nne"]
    assert not (tmp_path / "out" / "th.txt").exists()
    assert capsys.readouterr().err.startswith("warning: no text in th in ")


def test_pairs_below_the_margin_are_left_out(tmp_path):
    rows = "1.1\tone\tодин\n1.04\ttwo\tдва\n1.039\tthree\tтри\n"
    pack(tmp_path / "WikiMatrix.en-ru.tsv.gz", rows)
    tool.main([str(tmp_path), *f"--languages ru --min-score 1.04 --out {tmp_path}".split()])
    assert sorted(lines(tmp_path / "ru.txt")) == ["два", "один"]


@pytest.mark.parametrize("name", ["WikiMatrix.en-ru.tsv.gz", "mrtydi-v1.1-russian/x"])
def test_a_margin_that_no_pair_has_is_one_line(name, tmp_path, capsys):
    pack(tmp_path / name, "one\tодин\n")
    with pytest.raises(SystemExit, match="2"):
        tool.main([str(tmp_path), *f"--languages ru --min-score 1.04 --out {tmp_path}".split()])
    assert "--min-score" in capsys.readouterr().err
    assert not (tmp_path / "ru.txt").exists()


def test_mr_tydi_passages_on_one_line_each(tmp_path):
    folder = tmp_path / "mrtydi-v1.1-thai"
    passages = [
        {"id": f"{n}#0", "contents": f"Title\n\npassage {n}\nof two lines"} for n in range(50)
    ]
    pack(
        folder / "collection" / "docs.jsonl.gz", "".join(json.dumps(row) + "\n" for row in passages)
    )
    (folder / "topic.test.tsv").write_text("q1\tquestion\n")
    (folder / "qrels.test.txt").write_text("q1 Q0 1#0 1\n")
    drawn = []
    for seed in ("0", "0", "1"):
        options = f"--languages th --out {tmp_path} --sentences 5 --seed {seed}"
        tool.main([str(tmp_path), *options.split()])
        drawn.append(lines(tmp_path / "th.txt"))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 5
    assert set(drawn[0]) <= {f"passage {n} of two lines" for n in range(50)}


def test_a_folder_without_either_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        tool.main([str(tmp_path), "--languages", "ru", "--out", str(tmp_path)])
    assert capsys.readouterr().err.count("\n") == 1
