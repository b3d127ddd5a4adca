import dataclasses
import io

from rich.console import Console

from interlingua.preparation.pipeline import prepare_corpus
from interlingua.preparation.report import corpus_summary
from tests.preparation.conftest import config_for, sentences, write_tsv


def prepared(folder, corpus, exam):
    """Return the manifest of a corpus without the sentences of an exam."""
    (folder / "exam").mkdir()
    for name, text in (("exam.txt", exam), ("README.md", "no text"), ("vectors.npy", "no text")):
        (folder / "exam" / name).write_text(text)
    config = config_for(folder, corpus, decontaminate=(folder / "exam",))
    return prepare_corpus(config)


def test_tables_name_sources_rules_and_totals(tmp_path, corpus):
    write_tsv(corpus / "de-en.x.news.tsv", [("gleich", "gleich")])
    manifest = prepared(tmp_path, corpus, "no such sentence")
    console = Console(file=io.StringIO(), width=120)
    for table in corpus_summary(manifest):
        console.print(table)
    rows = [line.replace("│", " ").split() for line in console.file.getvalue().splitlines()]
    assert ["news", "CC0", "301", "1", "270", "10", "20"] in rows
    assert ["identical", "1"] in rows
    assert ["of", "these", "in", "exam", "0"] in rows
    assert ["evaluation", "files", "without", "text,", "not", "compared", "2"] in rows
    assert ["training", "pairs", "540"] in rows
    assert ["languages", "3"] in rows


def test_what_is_in_evaluation_sets_stands_below_its_rule(tmp_path, corpus):
    write_tsv(corpus / "de-en.x.news.tsv", [("gleich", "gleich")] * 70)
    manifest = prepared(tmp_path, corpus, "\n".join(row[0] for row in sentences(3)))
    assert min(manifest.dropped, key=manifest.dropped.get) == "in_evaluation_set"
    manifest = dataclasses.replace(manifest, dropped=manifest.dropped | {"empty": 1})
    rules = next(table for table in corpus_summary(manifest) if table.title.startswith("Dropped"))
    shown = list(rules.columns[0].cells)
    assert shown.index("  of these in exam") == shown.index("in_evaluation_set") + 1
    assert shown[-1] == "empty"
