"""Small token stores, and what tests ask of stores and batches."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from interlingua.batches.token_store import TokenStore, TokenStoreWriter
from interlingua.storage.record import checksum_of

COUNTS = {("deu_Latn", "eng_Latn"): 120, ("eng_Latn", "jpn_Jpan"): 37, ("eng_Latn", "kat_Geor"): 5}


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """162 pairs in three language pairs.

    The tokens of a row name its pair, its side and the row itself.
    """
    path = tmp_path_factory.mktemp("store") / "train"
    draw = np.random.default_rng(0)
    with TokenStoreWriter(path, vocabulary_size=70_000) as writer:
        for index, (pair, count) in enumerate(COUNTS.items()):
            sides = []
            for first in (1000 * index, 1000 * index + 300):
                sides.append([[first + row] * int(draw.integers(1, 9)) for row in range(count)])
            writer.append(pair, *sides)
    return TokenStore.open(path)


@pytest.fixture
def damaged(tmp_path):
    """The folder of a store of two rows, to be damaged."""
    with TokenStoreWriter(tmp_path / "s", vocabulary_size=300) as writer:
        writer.append(("deu_Latn", "eng_Latn"), [[1, 2, 3], [6]], [[4, 5], [7, 8]])
    return tmp_path / "s"


def rewrite_header(folder, change):
    """Change a store's header and update its checksum."""
    path = folder / "header.json"
    header = json.loads(path.read_text())
    change(header)
    path.write_text(json.dumps(header | {"checksum": checksum_of(header)}))


def assert_same(one, other):
    assert torch.equal(one.input_ids, other.input_ids)
    assert torch.equal(one.cu_seqlens, other.cu_seqlens)
    assert one.cu_seqlens.dtype == other.cu_seqlens.dtype
    assert one[2:] == other[2:]
