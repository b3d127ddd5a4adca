"""docs/how-to/average.md and extend.md: their commands and their Python run on tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.encoder.encoder import Encoder
from tests.adapt.conftest import word_encoder
from tests.adapt.invented import workplace
from tests.docs.markdown import follow, run_python

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to"


@pytest.fixture
def models(tmp_path, word_vocabulary):
    for seed, name in enumerate(("start", "trained", "other")):
        word_encoder(word_vocabulary, seed).save(tmp_path / name)
    rows = [f"de{n} de{n + 1}\ten{n} en{n + 1}\n" for n in range(12)]
    (tmp_path / "heldout.de-en.tsv").write_text("".join(rows))
    scores = [f"{n / 2}\ten{n} en1\ten{2 * n} en3\n" for n in range(10)]
    (tmp_path / "sts.en.dev.tsv").write_text("".join(scores))
    return tmp_path


def test_averaging_goes_as_the_page_says(models, capsys):
    printed = list(follow(DOCS / "average.md", models).values())
    assert len(printed) == 4
    assert "* the best similarity among those that lose at most 0.3 P@1 of share 1" in printed[0]
    assert printed[2] == "written: half (shares 0.5, 0.5)\n"
    names = run_python(DOCS / "average.md", models)
    assert len(names["result"].grid) == 3
    assert names["result"].rule in capsys.readouterr().out


def test_extending_goes_as_the_page_says(tmp_path, capsys):
    folder = workplace(tmp_path)
    quick = "--lang eu --epochs 1 --batch-size 16 --quiet --threads 1"
    extended, mixed = follow(DOCS / "extend.md", folder, instead={"--lang eu": quick}).values()
    assert "0 of 190 texts in other languages are tokenized differently" in extended
    assert "mean of the other languages, P@1" in extended
    assert "written: mixed" in mixed
    assert (
        Encoder.load(folder / "mixed").vocabulary.digest()
        == Encoder.load(folder / "extended/model").vocabulary.digest()
    )
    names = run_python(DOCS / "extend.md", folder)
    assert f"{names['result'].gained}" in capsys.readouterr().out
