from __future__ import annotations

import pytest

from interlingua.batches.token_store import TokenStore
from interlingua.errors import DataError
from tests.batches.conftest import rewrite_header

PAIR = {"source": "deu_Latn", "target": "eng_Latn", "rows": 2}
FILES = {"tokens.bin": 16, "offsets.bin": 40}
WILD = [
    ("vocabulary_size", -5),
    ("vocabulary_size", "300"),
    ("vocabulary_size", 1e3),
    ("vocabulary_size", True),
    ("vocabulary_size", 10**30),
    ("vocabulary_size", 100_000),
    ("closing_tokens", -1),
    ("closing_tokens", [1]),
    ("closing_tokens", 2**40),
    ("vocabulary_digest", 5),
    ("dtype", "<i2"),
    ("dtype", "<f4"),
    ("dtype", "|O"),
    ("dtype", {}),
    ("language_pairs", 5),
    ("language_pairs", ["deu_Latn"]),
    ("language_pairs", [PAIR | {"rows": -2}]),
    ("language_pairs", [PAIR | {"rows": "2"}]),
    ("language_pairs", [PAIR | {"rows": 10**40}]),
    ("language_pairs", [PAIR | {"source": None}]),
    ("language_pairs", [PAIR | {"source": "no language"}]),
    ("language_pairs", [PAIR, PAIR]),
    ("bytes", None),
    ("bytes", {"tokens.bin": 16}),
    ("bytes", FILES | {"offsets.bin": 48}),
    ("bytes", FILES | {"tokens.bin": "16"}),
    ("bytes", FILES | {"tokens.bin": 15}),
    ("bytes", FILES | {"../tokens.bin": 16}),
    ("sha256", []),
    ("sha256", {}),
]


@pytest.mark.parametrize(("key", "value"), WILD)
def test_a_wild_header_with_a_right_checksum_is_refused(damaged, key, value):
    rewrite_header(damaged, lambda header: header.update({key: value}))
    named = "dtype" if value == 100_000 else key
    with pytest.raises(DataError, match=rf"header\.json: .*{named}"):
        TokenStore.open(damaged)


@pytest.mark.parametrize(
    "key", ["vocabulary_size", "closing_tokens", "language_pairs", "bytes", "sha256", "dtype"]
)
def test_a_header_without_a_key_is_refused(damaged, key):
    rewrite_header(damaged, lambda header: header.pop(key))
    with pytest.raises(DataError, match=r"header\.json: "):
        TokenStore.open(damaged)
