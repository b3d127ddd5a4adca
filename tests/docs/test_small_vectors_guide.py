"""docs/how-to/small-vectors.md: its commands run in their order on a tiny model, then its Python
part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from interlingua.config.registry import METHODS, resolve_name
from interlingua.encoder.encoder import Encoder
from interlingua.methods.objective import Objective
from tests.docs.markdown import follow, run_python
from tests.methods.harness import PREFIXES, tiny_batch, tiny_objective
from tests.tiny import tiny_encoder

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "how-to" / "small-vectors.md"
METHOD_PAGE = DOCS / "methods" / "matryoshka.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary, prepared):
    folder = tmp_path_factory.mktemp("small-vectors")
    tiny_encoder(word_vocabulary).save(folder / "model")
    (folder / "prepared").symlink_to(prepared)
    (folder / "news.en.txt").write_text("en1 en2\nen3\nen4 en5 en6\n", encoding="utf-8")
    (folder / "news.de.txt").write_text("de1 de2\nde3\nde4 de5 de6\n", encoding="utf-8")
    (folder / "texts").mkdir()
    for code in ("de", "en"):
        lines = [f"{code}{n} {code}{n + 1}" for n in range(20)]
        (folder / "texts" / f"{code}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    goldp, tatoeba = folder / "data" / "tydiqa_goldp", folder / "data" / "tatoeba_laser"
    for data in (goldp, tatoeba):
        data.mkdir(parents=True)
    (goldp / "en.dev.questions.tsv").write_text("en-0\t1\ten1 en2\tanswer\n")
    (goldp / "en.dev.passages.txt").write_text("en7 en8\nen1 en3\nen9\n")
    (tatoeba / "deu-eng.tsv").write_text(
        "".join(f"de{n} de{n + 1}\ten{n} en{n + 1}\n" for n in range(9))
    )
    return folder


@pytest.fixture(scope="module")
def said(workplace):
    """Command -> output.

    Widths are a tenth of the page's, the model being a tenth as wide.
    """
    text = PAGE.read_text(encoding="utf-8")
    text = text.replace("[384, 256, 128, 64]", "[32, 16, 12, 8]")
    text = text.replace("max_steps = 1000", 'max_steps = 3\nthreads = 1\ndevice = "cpu"')
    tiny = workplace / "page.md"
    tiny.write_text(text, encoding="utf-8")
    return follow(tiny, workplace, instead={"dim 128": "dim 12", "embed news": "embed model news"})


def test_every_command_runs(said, workplace):
    assert len(said) == 13
    assert np.load(workplace / "news.npy").shape == (3, 2)
    assert Encoder.load(workplace / "runs" / "nested" / "model").settings.matryoshka_dims == (
        32,
        16,
        12,
        8,
    )
    assert Encoder.load(workplace / "turned").post_pooling.kinds == ("Dense",)
    small = Encoder.load(workplace / "small")
    assert (small.dim, list(small.settings.int8_ranges)) == (12, [12, 8])
    assert np.load(workplace / "bytes.npy").dtype == np.int8
    folders = {path.parent.name for path in workplace.rglob("tydi_goldp*.json")}
    assert len(folders) == 3
    assert "recall@" in list(said.values())[-1]


def test_the_search_in_python_is_exact(said, workplace):
    found = run_python(PAGE, workplace)["found"]
    encoder = Encoder.load(workplace / "model")
    texts = (workplace / "news.en.txt").read_text().splitlines()
    similarities = encoder.encode(["en1 en2"]) @ encoder.encode(texts).T
    assert found.indices.tolist() == np.argsort(-similarities)[:, :2].tolist()


@pytest.mark.parametrize(
    "method", sorted(name for name in METHODS if resolve_name(METHODS, name).nested_terms)
)
def test_the_table_of_terms_is_what_methods_do(method):
    rows = [line.split("|")[1:4] for line in METHOD_PAGE.read_text(encoding="utf-8").splitlines()]
    table = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if len(row) == 3}
    nested, once = ([name for name in cell.split(", ") if name] for cell in table[method])
    objective: type[Objective] = resolve_name(METHODS, method)
    assert sorted(nested) == sorted(objective.nested_terms)
    terms = tiny_objective(method, PREFIXES)(tiny_batch(method)).terms
    assert {name for name in terms if not name.rpartition("_")[2].isdigit()} == set(once)
