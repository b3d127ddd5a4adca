from __future__ import annotations

import gzip

import numpy as np
import pytest

from interlingua.corpus.formats.bitext import TextPair, write_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.metrics.xsim import xsim_predictions
from interlingua.evaluation.tasks.translation.paracrawl import LANGUAGES, ParaCrawlRetrieval
from tests.evaluation.files import write_rows


class Noisy:
    """A sentence is its number's vector, blurred in the foreign language."""

    def __init__(self, noise=1.1, dim=16):
        self.noise, self.dim, self.calls = noise, dim, []

    def encode(self, texts, *, language=None):
        self.calls.append((list(texts), language))
        rows = [
            np.random.default_rng(int(text.split()[1])).standard_normal((2, self.dim))
            for text in texts
        ]
        noise = 0 if language == "eng_Latn" else self.noise
        return np.array([meaning + noise * blur for meaning, blur in rows], dtype=np.float32)


def write_tsv(folder, name, numbers):
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / name, (f"en {n}\tx {n}" for n in numbers))


@pytest.fixture
def folder(tmp_path):
    write_tsv(tmp_path / "paracrawl", "en-de.txt", range(400))
    return tmp_path / "paracrawl"


def test_xsim_on_the_same_sample_agrees(folder):
    encoder = Noisy()
    result = ParaCrawlRetrieval(queries=60, candidates=250).evaluate(encoder, folder.parent)
    (queries, source), (candidates, target) = encoder.calls
    assert (source, target) == ("eng_Latn", "deu_Latn")
    assert (len(queries), len(candidates), len(set(candidates))) == (60, 250, 250)
    assert [text.split()[1] for text in queries] == [text.split()[1] for text in candidates[:60]]
    x, y = encoder.encode(queries, language=source), encoder.encode(candidates, language=target)
    right = {m: found == np.arange(60) for m, found in xsim_predictions(x, y, k=4).items()}
    (subset,) = result.subsets
    assert dict(subset.scores) == {
        "accuracy": right["ratio"].mean(),
        "accuracy_cosine": right["absolute"].mean(),
    }
    assert all(0.3 < score < 0.9 for score in subset.scores.values())
    assert (
        result.items["eng_Latn-deu_Latn"].values.tolist() == right["ratio"].astype(float).tolist()
    )
    assert result.task == "paracrawl_retrieval"
    assert list(result.groups) == ["all_1", "paracrawl_1of21"]
    assert result.notes == ()
    wrong = result.examples["eng_Latn-deu_Latn"][0]
    assert wrong.query.replace("en", "x") == wrong.expected != wrong.retrieved


def test_the_sample_is_of_the_seed(folder):
    def sample(**options):
        encoder = Noisy()
        ParaCrawlRetrieval(queries=20, candidates=100, **options).evaluate(encoder, folder)
        return encoder.calls[1][0]

    first = sample()
    assert first == sample() != sample(seed=2)
    numbers = [int(text.split()[1]) for text in first]
    assert min(numbers) < 60
    assert max(numbers) > 340  # from the whole file


def test_the_other_direction(folder):
    encoder = Noisy()
    result = ParaCrawlRetrieval(queries=20, candidates=100, direction="x-en").evaluate(
        encoder, folder
    )
    assert [subset.name for subset in result.subsets] == ["deu_Latn-eng_Latn"]
    assert [(texts[0][0], len(texts), language) for texts, language in encoder.calls] == [
        ("x", 20, "deu_Latn"),
        ("e", 100, "eng_Latn"),
    ]


def test_every_format(tmp_path):
    pairs = [TextPair(f"de {n}", f"en {n}", "deu_Latn", "eng_Latn") for n in range(30)]
    folder = tmp_path / "ParaCrawl"
    folder.mkdir()
    write_pairs(pairs, folder / "de-en.tmx")
    write_pairs(
        [pair._replace(source_language="fra_Latn") for pair in pairs], folder / "ParaCrawl.fr-en"
    )
    write_pairs(
        [
            pair._replace(source=f"бг {n}", source_language="bul_Cyrl")
            for n, pair in enumerate(pairs)
        ],
        folder / "bg-en.txt.zip",
    )
    (folder / "en-cs.bicleaner05.txt.gz").write_bytes(
        gzip.compress(b"en 1\tcs 1\nen 2\tcs 2\n\nen 3\t \n")
    )
    write_tsv(folder, "cs-en.tsv", [])
    write_tsv(folder, "de-fr.tsv", [1])
    (folder / "README.en-de.md").write_text("not data")
    files = ParaCrawlRetrieval().files(folder)
    assert {code: [path.name for path in paths] for code, paths in files.items()} == {
        "fra_Latn": ["ParaCrawl.fr-en.fr"],
        "bul_Cyrl": ["bg-en.txt.zip"],
        "ces_Latn": ["cs-en.tsv", "en-cs.bicleaner05.txt.gz"],
        "deu_Latn": ["de-en.tmx"],
    }
    result = ParaCrawlRetrieval(languages=["de", "fr", "bg", "cs"]).evaluate(Noisy(0), folder)
    assert [subset.pairs for subset in result.subsets] == [30, 30, 2, 30]
    assert result.main_score == 1.0
    assert ParaCrawlRetrieval().parts(tmp_path) == [*files]


def test_repeated_texts_count_once_and_are_reported(tmp_path):
    lines = ["en 1\tx 1", "en 1\tx 2", "en 3\tx 1", "en 4\tx 4", "en 3\tx 5"]
    (tmp_path / "en-de.tsv").write_text("\n".join(lines) + "\n")
    encoder = Noisy(0)
    result = ParaCrawlRetrieval().evaluate(encoder, tmp_path)
    assert sorted(encoder.calls[1][0]) == ["x 1", "x 4"]
    assert result.notes == (
        "eng_Latn-deu_Latn: 2 candidates instead of 200,000; 3 pairs were skipped because they"
        " repeat a text",
    )
    assert (result.task, list(result.groups)) == (f"paracrawl_retrieval_{tmp_path.name}", ["all_1"])


def test_the_papers_languages():
    assert len(set(LANGUAGES.split())) == 21


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": 0}, "queries: expected"),
        ({"candidates": 100}, "queries: .*100"),
        ({"k": 0}, "k: expected"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ConfigError, match=message):
        ParaCrawlRetrieval(**options)


def test_wrong_folders_and_files_are_one_line(tmp_path, folder):
    with pytest.raises(DataError, match=r"no file .*'fr'.*deu_Latn"):
        ParaCrawlRetrieval(languages=["fr"]).evaluate(Noisy(), folder)
    (folder / "en-fr.tsv").write_text("en 1\t\n")
    with pytest.raises(DataError, match=r"en-fr.tsv: .*no pairs"):
        ParaCrawlRetrieval(languages=["fr"]).evaluate(Noisy(), folder)
    (folder / "en-fr.tsv").write_text("en 1\tfr 1\nen 2\n")
    with pytest.raises(DataError, match=r"en-fr.tsv:2: found 1 column, expected 2"):
        ParaCrawlRetrieval(languages=["fr"]).evaluate(Noisy(), folder)
    (tmp_path / "none").mkdir()
    with pytest.raises(
        DataError,
        match=r"bitexts .* paracrawl/ or ParaCrawl/",
    ):
        ParaCrawlRetrieval().evaluate(Noisy(), tmp_path / "none")
