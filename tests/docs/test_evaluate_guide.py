"""docs/how-to/evaluate.md: its commands run in their order on a tiny model and tiny data.

Docs/reference/results.md.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import follow, run_python
from tests.mining.invented import write_lines
from tests.tiny import tiny_encoder

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "evaluate.md"
FUNCTION = (
    "import numpy as np\n\ndef embed(texts):\n    return np.array([[len(t), t.count(' '), 1] for t"
    " in texts])\n"
)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("guide")
    tiny_encoder(word_vocabulary).save(folder / "runs" / "ems" / "model")
    tatoeba, flores = folder / "data" / "tatoeba_laser", folder / "data" / "flores200_devtest"
    tatoeba.mkdir(parents=True)
    flores.mkdir()
    for code in ("deu", "swh", "cmn"):
        write_lines(
            tatoeba / f"{code}-eng.tsv", [f"de{n} de{n + 1}\ten{n} en{n + 1}" for n in range(9)]
        )
    for code in ("deu_Latn", "rus_Cyrl", "eng_Latn"):
        lines = (" ".join(f"{code[:2]}{n + step}" for step in (0, 2, 4, 8)) for n in range(9))
        write_lines(flores / f"{code}.txt", lines)
    ntrex = folder / "data" / "NTREX-128"
    ntrex.mkdir()
    for name in ("src.eng", "ref.deu", "ref.fra-CA"):
        write_lines(ntrex / f"newstest2019-{name}.txt", [f"{name[4:6]}{n}" for n in range(9)])
    write_similarity(folder / "data")
    write_retrieval(folder)
    write_mining(folder / "data")
    write_classification(folder)
    (folder / "my_code.py").write_text(FUNCTION)
    (folder / "my_vectors").mkdir()
    lines = (tatoeba / "deu-eng.tsv").read_text().replace("\t", "\n")
    (folder / "my_vectors" / "tatoeba.txt").write_text(lines)
    return folder


def write_similarity(data):
    rows = "".join(f"{n / 2}\tde{n} de{n + 1}\ten{n} en{2 * n}\n" for n in range(9))
    for path in (
        "sts17/track5.en-en.tsv",
        "sts17/track2.ar-en.tsv",
        "stsb/de.test.tsv",
        "stsb/en.test.tsv",
        "stsb/de.dev.tsv",
        "stsb/en.dev.tsv",
        "sick/test.tsv",
    ):
        (data / path).parent.mkdir(exist_ok=True)
        (data / path).write_text(rows)


def write_retrieval(folder):
    goldp, own = folder / "data" / "tydiqa_goldp", folder / "my_passages"
    goldp.mkdir()
    write_xquad_r(folder / "data" / "xquad_r")
    (folder / "my_translations").mkdir()
    for name in ("German.txt", "pt-BR.txt", "en.txt"):
        write_lines(
            folder / "my_translations" / name, [f"{name[:2].lower()}{n} en{n}" for n in range(9)]
        )
    (own / "qrels").mkdir(parents=True)
    for code in ("sw", "en"):
        write_lines(goldp / f"{code}.dev.questions.tsv", [f"q{n}\t{n}\tde{n}\t" for n in range(9)])
        write_lines(goldp / f"{code}.dev.passages.txt", [f"de{n} en{n}" for n in range(9)])
    for name in ("corpus", "queries"):
        (own / f"{name}.jsonl").write_text(
            "".join(f'{{"_id": "{n}", "text": "de{n}"}}\n' for n in range(9))
        )
    (own / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n0\t0\t1\n1\t1\t1\n")


def write_xquad_r(folder):
    folder.mkdir()
    for code in ("de", "en"):
        sentences = [f"{code}{n} {code}{n + 1}" for n in range(9)]
        breaks = [[10 * n, 10 * n + 9] for n in range(9)]
        asked = [
            {"id": f"q{n}", "question": f"{code}{n}", "answers": [{"answer_start": 10 * n}]}
            for n in range(9)
        ]
        paragraph = {"sentences": sentences, "sentence_breaks": breaks, "qas": asked}
        (folder / f"{code}.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))


def write_mining(data):
    (data / "bucc").mkdir()
    (data / "paracrawl").mkdir()
    for code, word in (("zh", "de"), ("en", "en")):
        write_lines(
            data / "bucc" / f"dev.{code}",
            [f"{code}-{n}\t{word}{n} {word}{n + 2}" for n in range(12)],
        )
    write_lines(data / "bucc" / "dev.gold", [f"zh-{n}\ten-{n}" for n in (2, 3, 7, 8)])
    write_lines(data / "paracrawl" / "en-de.txt", [f"en{n} en{n + 1}\tde{n}" for n in range(30)])


def write_classification(folder):
    sib, reviews = folder / "data" / "sib200", folder / "my_reviews"
    plain, pairs = folder / "data" / "senteval_cls", folder / "data" / "xnli"
    for made in (
        reviews,
        plain,
        pairs,
        *(sib / code for code in ("deu_Latn", "eng_Latn", "spa_Latn")),
    ):
        made.mkdir(parents=True)
    for code, word in (("deu_Latn", "de"), ("eng_Latn", "en"), ("spa_Latn", "de")):
        for split, size in (("train", 24), ("dev", 6), ("test", 9)):
            rows = [
                (n, ("sports", "health")[n % 2], f"{word}{n % 2} {word}{n}.") for n in range(size)
            ]
            write_lines(
                sib / code / f"{split}.tsv", [f"{n}\t{topic}\t{text}" for n, topic, text in rows]
            )
            if word == code[:2]:
                own = "".join(f"{topic}\t{text} {text}\n" for _, topic, text in rows)
                (reviews / f"{word}.{split}.tsv").write_text(own)
    write_lines(plain / "custrev.all", [f"{n % 2} en{n % 2} en{n}" for n in range(60)])
    for code in ("de", "en"):
        rows = "".join(
            f"{code}{n}\ten{n + n % 2}\t{('entailment', 'neutral')[n % 2]}\n" for n in range(9)
        )
        (pairs / f"dev-{code}.tsv").write_text(rows)


@pytest.fixture(scope="module")
def said(workplace):
    """Command -> output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLINGUA_DATA", str(workplace / "data"))
        patch.setattr(sys, "path", [*sys.path])
        return follow(GUIDE, workplace, opening=False)


def writes_results(command):
    return command.startswith("interlingua evaluate") and "--shard" not in command


def test_every_command_runs(said, workplace):
    assert len(said) >= 16
    for command, output in said.items():
        assert ("written: reports/results/" in output) == writes_results(command), output
    written = {path.parent.parent.name for path in (workplace / "reports").rglob("*.json")}
    assert (workplace / "reports" / "runs" / "tydi_goldp.sw.hybrid.trec").is_file()
    assert written == {"ems-model", "theirs", "my_code_embed", "my_vectors"}


def test_compare_shows_them_all(said):
    page, markdown, table, latex, arms, stored, again, joined = [
        output for command, output in said.items() if command.startswith("interlingua compare")
    ]
    assert "| theirs |" in arms
    assert stored == "written: results.jsonl\n"
    assert "| theirs |" in again
    assert "sick_sick: spearman" in arms
    assert "| sts17_sts17: all_2 |" in joined
    assert "### tatoeba_tatoeba_laser: accuracy" in markdown
    assert all(
        name in markdown
        for name in ("theirs", "my_code:embed", "prompt='query: ')", "languages=de+Swahili+cmn")
    )
    assert any(",swh-eng,accuracy_forward,theirs," in line for line in table.splitlines())
    assert (page, latex) == ("written: report.html\n", "written: table.tex\n")


def test_the_python_part_runs(said, workplace, capsys):
    run_python(GUIDE, workplace)
    assert "all_2" in capsys.readouterr().out


def test_the_reference_names_every_key(said, workplace):
    reference = (DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    tasks = (
        "tatoeba_tatoeba_laser",
        "xsim_flores200_devtest",
        "stsb_stsb",
        "sick_sick",
        "tydi_goldp_tydiqa_goldp",
        "zero_shot_folder_my_reviews",
        "zero_shot_sib200",
        "few_shot_sib200",
        "senteval_senteval_cls",
        "pair_xnli",
        "bucc_margin_bucc",
        "bucc_best_f1_bucc",
        "bucc_mteb_bucc",
        "paracrawl_retrieval",
        "mteb_STS17",
        "xsim_pp_generated_flores200_devtest",
        "ntrex_xsim_NTREX-128",
        "ntrex_f1_NTREX-128",
        "mixed_pool_my_translations",
        "lareqa_xquad_r",
        "xquad_r_xquad_r",
    )
    for task in tasks:
        content = json.loads(next(workplace.rglob(f"{task}*.json")).read_text())
        own = content["interlingua"]
        keys = [
            *content,
            *content["scores"]["test"][0],
            *own,
            *own["provenance"],
            *own["provenance"]["model"],
        ]
        keys += own["settings"]
        # These are explained for all metrics together.
        bare = [re.sub("^(bm25|hybrid)_|_all_languages$", "", key) for key in keys]
        assert [key for key in bare if key not in reference] == []
