"""docs/how-to/vector-stores.md: its Python parts are run on a tiny model, where the store and its
client are there."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from tests.docs import postgres
from tests.docs.markdown import has_model
from tests.tiny import tiny_encoder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "vector-stores.md"
FIRST, *PARTS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
LINES = {"en": ["en1 en2", "en3", "en4 en5 en6"], "de": ["de1 de2", "de3", "de4 de5 de6"]}
TEXTS = LINES["en"] + LINES["de"]


@pytest.fixture
def workplace(tmp_path, word_vocabulary):
    tiny_encoder(word_vocabulary).save(tmp_path / "model")
    for language, texts in LINES.items():
        (tmp_path / f"news.{language}.txt").write_text(
            "".join(f"{text}\n" for text in texts), encoding="utf-8"
        )
    return tmp_path


def run_part(code: str, folder: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        exec(compile(code, PAGE.name, "exec"), names)
    return names


def ranked(folder: Path) -> list[str]:
    """Return the texts, the nearest to the page's query first."""
    encoder = Encoder.load(folder / "model")
    similarities = encoder.encode(TEXTS) @ encoder.encode(["en1 en2"])[0]
    return [TEXTS[row] for row in np.argsort(-similarities)]


@pytest.mark.skipif(not has_model(), reason="the default model is not installed")
def test_the_first_part_prints_what_its_comment_says(workplace, capsys):
    run_part(FIRST, workplace)
    assert f"# {capsys.readouterr().out}" in FIRST


@pytest.mark.parametrize("code", PARTS)
def test_a_recipe_has_at_most_30_lines(code):
    assert len(code.splitlines()) <= 30


def test_qdrant_ranks_as_the_vectors_do(workplace):
    pytest.importorskip("qdrant_client")
    names = run_part(PARTS[0], workplace)
    assert [point.payload["text"] for point in names["found"]] == ranked(workplace)[:4]
    german = [text for text in ranked(workplace) if text in LINES["de"]]
    assert [point.payload["text"] for point in names["only_german"]] == german[:2]


@pytest.fixture
def database():
    """The URL of an empty database with pgvector."""
    pytest.importorskip("psycopg")
    given = os.environ.get(postgres.VARIABLE)
    if given is not None:
        yield given
        return
    programs = postgres.programs()
    if programs is None:
        pytest.skip(f"no PostgreSQL with pgvector here, and {postgres.VARIABLE} names none")
    with postgres.running(programs) as url:
        yield url


def test_pgvector_ranks_as_the_vectors_do(workplace, database):
    names = run_part(PARTS[1].replace("postgresql:///news", database), workplace)
    assert [content for (content,) in names["found"]] == ranked(workplace)[:4]
