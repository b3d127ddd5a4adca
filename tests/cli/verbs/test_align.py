from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interlingua.alignment.align import read_links
from interlingua.corpus.formats.bitext import read_pairs
from tests.alignment.test_align import written

ALIGN = "align invented_words:embed --backend function"
WORDS = Path(__file__).resolve().parents[2] / "mining" / "words.py"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    shutil.copy(WORDS, tmp_path / "invented_words.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_documents(done, workplace):
    de, en, gold = written(workplace, 1)
    said = done(f"{ALIGN} {de} {en} --gold {gold} --texts texts.tsv")
    assert said.out.startswith("[0]:[0]:0.000000\n")
    assert "1 document pair, " in said.err
    assert "strict: precision " in said.err
    (workplace / "links").write_text(said.out, encoding="utf-8")
    links = [link for link in read_links("links") if link.source and link.target]
    texts = list(read_pairs("texts.tsv", source_language="de", target_language="en"))
    assert [text.score for text in texts] == pytest.approx(
        [1 - link.cost for link in links], abs=1e-5
    )


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
def test_linked_sentences_go_to_a_spreadsheet(done, refused, workplace, name):
    de, en, _ = written(workplace, 1)
    done(f"{ALIGN} {de} {en} --texts t.tsv --quiet")
    done(f"{ALIGN} {de} {en} --texts {name} --quiet --source-language de --target-language en")
    plain = [pair[:4] for pair in read_pairs("t.tsv", source_language="de", target_language="en")]
    assert [pair[:4] for pair in read_pairs(name)] == plain
    assert "unknown format of bitext .odt" in refused(f"{ALIGN} {de} {en} --texts t.odt").err
    assert sorted(path.name for path in workplace.glob("t.*")) == sorted([name, "t.tsv"])


def test_options_reach_the_search(done, workplace):
    de, en, _ = written(workplace, 1)
    options = "--max-sentences 2 --skip-quantile 0.1 --band 9 --texts out.tmx"
    said = done(
        f"{ALIGN} {de} {en} -o a.align",
        options,
        "--source-language de --target-language eng_Latn --quiet",
    )
    assert (said.out, said.err) == ("", "")
    assert {(len(link.source), len(link.target)) for link in read_links("a.align")} <= {
        (1, 1),
        (1, 0),
        (0, 1),
    }
    assert next(read_pairs("out.tmx")).source_language == "deu_Latn"


def test_a_list_goes_on_where_a_document_is_broken(run, done, workplace):
    named = [written(workplace, seed) for seed in (1, 2)]
    (workplace / "empty").write_text("", encoding="utf-8")
    rows = [f"{de}\t{en}\t\t{gold}" for de, en, gold in named]
    (workplace / "list").write_text(
        "\n".join([rows[0], f"empty\t{named[0][1]}", rows[1]]), encoding="utf-8"
    )
    said = run(f"{ALIGN} --list list -o links")
    assert said.code == 2
    names = ["1.de.align", "2.de.align"]
    assert sorted(path.name for path in (workplace / "links").iterdir()) == [
        *names,
        "align.journal",
    ]
    assert "left out: empty" in said.err
    assert said.err.splitlines()[-1] == (
        "interlingua: 1 of 3 document pairs could not be aligned (see the lines above), the others"
        " are finished; run the same command again to align the rest"
    )
    assert "2 document pairs" in said.err
    shutil.copy(named[0][0], "empty")
    done(f"{ALIGN} --list list -o links")
    assert sorted(path.name for path in (workplace / "links").iterdir()) == [*names, "empty.align"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "two documents"),
        ("DE", "two documents"),
        ("DE absent", "absent: file not found"),
        ("DE LATIN", "umlauts:1: not UTF-8 (byte 0xe4)"),
        ("DE LATIN --texts x.tmx", "x.tmx: this format requires languages"),
        ("DE EN --gold DE", "1.de:1: expected [0, 1]:[2]"),
        ("DE EN --list DE", "--list cannot be combined with SOURCE, TARGET or --gold"),
        ("--list DE", "1.de:1: expected source TAB target"),
    ],
)
def test_mistakes_are_one_line(refused, arguments, message, workplace):
    de, en, _ = written(workplace, 1)
    (workplace / "umlauts").write_bytes(b"\xe4\n")
    names = {"DE": de, "EN": en, "LATIN": "umlauts"}
    assert (
        message
        in refused(ALIGN, *(names.get(word, word) for word in arguments.split()), "-o out").err
    )
    assert not (workplace / "out").exists()
