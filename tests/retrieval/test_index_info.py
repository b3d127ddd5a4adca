from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lancedb")

from interlingua.retrieval.index_info import index_info
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex


def test_numbers_of_an_index(tmp_path):
    settings = IndexSettings(model="m", digest="x", dim=2, question_prompt="query: ")
    index = PassageIndex.create(tmp_path / "index", settings)
    passages = [Passage(str(n), f"text {n}", language="de" if n else "en") for n in range(3)]
    index.add(passages, lambda wanted: np.ones((len(wanted), 2), dtype=np.float32))
    info = index_info(index)
    assert (info.passages, info.languages) == (3, {"de": 2, "en": 1})
    assert (info.model, info.dim, info.question_prompt) == ("m", 2, "query: ")
    assert (info.has_map, info.is_approximate) == (False, False)
    assert info.bytes > 0
    assert info.versions >= 2
