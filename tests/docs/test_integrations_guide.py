"""docs/how-to/integrations.md: its command is run on a tiny model, then its Python parts, if their
package is here."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from tests.docs.markdown import follow
from tests.tiny import tiny_encoder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "integrations.md"
PARTS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
LINES = {"en": ["en1 en2", "en3", "en4 en5 en6"], "de": ["de1 de2", "de3", "de4 de5 de6"]}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("integrations")
    tiny_encoder(word_vocabulary).save(folder / "model")
    for language, texts in LINES.items():
        (folder / f"news.{language}.txt").write_text(
            "".join(f"{text}\n" for text in texts), encoding="utf-8"
        )
    return folder


def run_part(package: str, folder: Path) -> dict[str, Any]:
    """Run the Python part that imports a package, and return the names that it sets."""
    pytest.importorskip(package)
    (code,) = [part for part in PARTS if f"import {package}" in part or f"from {package}" in part]
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        exec(compile(code, PAGE.name, "exec"), names)
    return names


def test_parquet_holds_what_encode_gives(workplace):
    pytest.importorskip("pyarrow")
    follow(PAGE, workplace, instead={"embed news": "embed model news"})
    names = run_part("pyarrow", workplace)
    assert names["texts"] == LINES["en"] + LINES["de"]
    assert np.array_equal(
        names["vectors"], Encoder.load(workplace / "model").encode(names["texts"])
    )


def ranked(workplace: Path) -> list[str]:
    """Return the three texts of the page, the nearest to its query first."""
    texts = ["de1 de2", "en3", "ru4 ru5"]
    encoder = Encoder.load(workplace / "model")
    similarities = encoder.encode(texts) @ encoder.encode(["en3 en4"])[0]
    return [texts[row] for row in np.argsort(-similarities)]


def test_langchain_finds_the_nearest(workplace):
    found = run_part("langchain_core", workplace)["found"]
    assert [document.page_content for document in found] == ranked(workplace)[:2]


def test_chroma_finds_the_nearest(workplace):
    found = run_part("chromadb", workplace)["found"]
    assert found["documents"] == [ranked(workplace)[:2]]


def test_a_pipeline_of_sklearn_classifies(workplace):
    names = run_part("sklearn", workplace)
    from sklearn.linear_model import LogisticRegression

    encoder = Encoder.load(workplace / "model")
    by_hand = LogisticRegression().fit(encoder.encode(LINES["en"]), ["news", "sports", "news"])
    expected = by_hand.predict(encoder.encode(["de1 de2"]))
    assert list(names["predicted"]) == list(expected)
