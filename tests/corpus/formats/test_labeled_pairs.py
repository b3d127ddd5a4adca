import logging

import pytest

from interlingua.adapt.development import read_similarity
from interlingua.corpus.formats.labeled_pairs import languages_in_name, read_labeled
from interlingua.errors import DataError
from interlingua.evaluation.data.pairs import pair_sets
from interlingua.evaluation.data.similarity import SimilarityFile, read_scored_pairs
from interlingua.evaluation.validation import similarity_evaluator
from interlingua.mining.review import read_labels
from tests.corpus.conftest import write

ENGLISH = ("eng_Latn", "eng_Latn")


def rows(path, kind, **options):
    return [pair[:3] for pair in read_labeled(path, kind=kind, languages=ENGLISH, **options)]


def test_snli_and_multinli_count_what_has_no_gold_label(tmp_path, caplog):
    both = {"sentence1": "A man.", "annotator_labels": []}
    labels = ("neutral", "-", "contradiction", "entailment", "-")
    records = [both | {"gold_label": label, "sentence2": f"B {label}"} for label in labels]
    path = write(tmp_path / "snli_1.0_train.jsonl", *records)
    with caplog.at_level(logging.WARNING, "interlingua"):
        found = rows(path, "nli")
    assert found == [
        ("A man.", "B neutral", 2.0),
        ("A man.", "B contradiction", 0.0),
        ("A man.", "B entailment", 1.0),
    ]
    assert "2 of 5 pairs have no gold label" in caplog.text


def test_xnli_of_the_authors_tells_the_language_row_by_row(tmp_path):
    header = "language\tgold_label\tsentence1_binary_parse\tsentence1\tsentence2\tgenre"
    lines = ("de\tneutral\t( x )\tEins\tZwei\tf", "ar\tentailment\t\tA\tB\tf")
    path = write(tmp_path / "xnli.dev.tsv", header, *lines)
    assert read_labeled(path, kind="nli", languages=ENGLISH) == [
        ("Eins", "Zwei", 2.0, "deu_Latn", "deu_Latn"),
        ("A", "B", 1.0, "arb_Arab", "arb_Arab"),
    ]


def test_xnli_of_xtreme_is_called_by_its_language(tmp_path):
    path = write(tmp_path / "dev-de.tsv", 'Er sagte, "ja\tNein"\tcontradictory')
    assert read_labeled(path, kind="nli", languages=ENGLISH) == [
        ('Er sagte, "ja', 'Nein"', 0.0, "deu_Latn", "deu_Latn")
    ]


def test_all_nli_by_split(tmp_path):
    header = "split\tdataset\tfilename\tsentence1\tsentence2\tlabel"
    splits = ("train", "dev", "train", "test")
    lines = [f"{split}\tSNLI\tf\ta {split}\tb\tneutral" for split in splits]
    path = write(tmp_path / "AllNLI.tsv.gz", header, *lines)
    assert [row[0] for row in rows(path, "nli")] == ["a train", "a train"]
    assert [row[0] for row in rows(path, "nli", split="dev")] == ["a dev"]


def test_sts_benchmark_of_sentence_transformers(tmp_path):
    header = "split\tgenre\tdataset\tyear\tsid\tscore\tsentence1\tsentence2"
    path = write(
        tmp_path / "stsbenchmark.tsv.gz",
        header,
        'train\tmain\tMSRvid\t2012\t1\t2.500\t6" of snow\tb',
        "dev\tmain\tMSRvid\t2012\t2\t5.000\tc\td",
    )
    assert rows(path, "sts") == [('6" of snow', "b", 0.5)]
    assert rows(path, "sts", split="dev") == [("c", "d", 1.0)]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("en.train.tsv", "3.8\tA man.\tA woman."),
        ("silver.tsv", "A man.\tA woman.\t3.8"),
        ("sts-train.csv", "main\tMSRvid\t2012test\t0004\t3.800\tA man.\tA woman."),
        ("sts-train.csv", "main\theadlines\t2013\t4\t3.800\tA man.\tA woman.\tsource 1\tsource 2"),
    ],
)
def test_layouts_of_similarity_sets(tmp_path, name, line):
    found = rows(write(tmp_path / name, line), "sts")
    assert found == [("A man.", "A woman.", pytest.approx(0.76))]


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("de.train.tsv", ("deu_Latn", "deu_Latn")),
        ("en-de.test.tsv.gz", ("eng_Latn", "deu_Latn")),
        ("dev-zh.tsv", ("zho_Hans", "zho_Hans")),
        ("silver.eng_Latn.tsv", ENGLISH),
        ("stsbenchmark.tsv.gz", None),
        ("sts-train.csv", None),
        ("en-de-fr.tsv", None),
    ],
)
def test_languages_by_name(tmp_path, name, languages):
    assert languages_in_name(tmp_path / name) == languages


def test_languages_given_where_nothing_says(tmp_path):
    path = write(tmp_path / "pairs.tsv", "a\tb\t1")
    given = ("deu_Latn", "eng_Latn")
    assert read_labeled(path, kind="sts", languages=given)[0][3:] == given


@pytest.mark.parametrize(
    ("kind", "lines", "message"),
    [
        (
            "nli",
            ["a\tb\tneutral", "a\tb\tmaybe"],
            ":2: unknown label 'maybe'; .*contradiction, entail",
        ),
        ("nli", ["a\tb\t2"], ":1: found 3 columns .*'nli'"),
        ("sts", ["a\tb\t3.0", "a\tb\t5.5"], r":2: unknown label '5\.5'; .*0 to 5"),
        ("sts", ["a\tb\t3.0", "a\tb"], ":2: .*found 2 columns"),
        ("sts", ["a\tb\t3.0", "a\t \t3.0"], r":2: a sentence is empty"),
        ("sts", ["score\tsentence1\tsentence2", "3\ta"], r":2: expected 3 columns .* 2 columns"),
        ("sts", ["sentence1\tsentence2\tgold_label"], ":1: no column .*'sts'; .*: sent"),
        (
            "nli",
            ["split\tsentence1\tsentence2\tlabel", "dev\ta\tb\tneutral"],
            r"labeled pairs .*\(of the spl",
        ),
        ("sts", [""], "no labeled pairs"),
    ],
)
def test_broken_tables(tmp_path, kind, lines, message):
    with pytest.raises(DataError, match=message):
        rows(write(tmp_path / "pairs.tsv", *lines), kind)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", ":1: not JSON"),
        ("[1]", ":1: .*list"),
        ('{"sentence1": "a"}', ":1: no column sentence2 or hypo"),
    ],
)
def test_broken_json(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        rows(write(tmp_path / "pairs.jsonl", line), "nli")


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match="file not found"):
        rows(tmp_path / "none.tsv", "nli")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("SICK_train.txt", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\ta\tb\t2.5"),
        ("sick.tsv", "2.5\ta\tb\tNEUTRAL"),
        ("stsb-de-train.csv", '"a","b",2.5'),
        ("STS.en-de.txt", "a\tb\t2.5"),
        ("STS.input.MSRpar.txt", "a\tb"),
        ("en-de.jsonl", '{"similarity_score": 2.5, "sentence1": "a", "sentence2": "b"}'),
    ],
)
def test_training_reads_what_evaluation_reads(tmp_path, name, content):
    path = write(tmp_path / name, content + "\n")
    write(tmp_path / "STS.gs.MSRpar.txt", "2.5\n")
    assert rows(path, "sts") == [("a", "b", 0.5)]
    judged = read_scored_pairs(SimilarityFile(("en", "en"), path))
    assert tuple(judged) == (["a"], ["b"], [2.5], 0)


def test_tracks_with_rows_that_begin_with_english(tmp_path):
    path = write(tmp_path / "track6.tr-en.tsv", "5\tA dog.\tBir köpek.")
    (pair,) = read_labeled(path, kind="sts", languages=ENGLISH)
    assert pair[3:] == ("eng_Latn", "tur_Latn")


READERS = {
    "training": lambda path: read_labeled(path, kind="sts", languages=ENGLISH),
    "average": read_similarity,
    "validation": lambda path: similarity_evaluator([path]),
    "similarity": lambda path: read_scored_pairs(SimilarityFile(("en", "en"), path)),
    "pairs": lambda path: pair_sets(path.parent, "test")["de"](),
    "calibrate": read_labels,
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "1\ta\tb\n1\ta\n",
            "de.test.tsv:2: expected 3 columns with tabs between them, found 2 columns",
        ),
        ("1\ta\tb\nx\ta\tb\n", "de.test.tsv:2: unknown label 'x'; expected "),
        ("1\ta\tb\n1\t \tb\n", "de.test.tsv:2: a sentence is empty; fill it in or remove the row"),
        ("", "de.test.tsv: the file contains no labeled pairs"),
    ],
    ids=["columns", "label", "sentence", "empty"],
)
def test_every_user_of_labeled_pairs_has_the_same_errors(tmp_path, content, message):
    path = write(tmp_path / "de.test.tsv", content)
    for name, read in READERS.items():
        with pytest.raises(DataError) as error:
            read(path)
        assert message in str(error.value), name
