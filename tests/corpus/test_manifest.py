import dataclasses
import json

import pytest

from interlingua.corpus.manifest import (
    LanguagePairRecord,
    Manifest,
    SourceFile,
    SourceRecord,
    prompt_of,
)
from interlingua.errors import DataError

MANIFEST = Manifest(
    created="2026-01-01T00:00:00+00:00",
    versions={"interlingua": "0.1"},
    config={"seed": 1, "clean": {"markup": "keep"}},
    sources=(
        SourceRecord(
            name="news", license="CC0", files=(SourceFile(path="a.tsv", bytes=3, sha256="00"),),
            read=5, skipped={"empty line": 1}, dropped={"identical": 2}, train=2, valid=1,
            heldout=0,
        ),
    ),
    language_pairs=(
        LanguagePairRecord(source="deu_Latn", target="eng_Latn", train=2, valid=1, heldout=0,
        dropped={"identical": 2}), LanguagePairRecord(source="deu_Latn", target="fra_Latn", train=3,
        valid=0, heldout=0, dropped={}),
    ),
    dropped={"identical": 2},
    decontaminated={"tatoeba": 0},
    vocabulary={"size": 100, "digest": "ff"},
    tokens={"deu_Latn": 12},
    seconds={"reading": 0.5},
)  # fmt: skip


def test_round_trip(tmp_path):
    MANIFEST.save(tmp_path)
    assert Manifest.load(tmp_path) == MANIFEST
    assert MANIFEST.languages == ("deu_Latn", "eng_Latn", "fra_Latn")
    assert MANIFEST.train == 5


def test_what_is_no_manifest(tmp_path):
    with pytest.raises(DataError, match=r"manifest\.json: can't be read"):
        Manifest.load(tmp_path)
    for content in ("{", "[]", '{"format": "x"}'):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(DataError, match="not a manifest"):
            Manifest.load(tmp_path)
    other = dataclasses.asdict(MANIFEST) | {"format": "other"}
    (tmp_path / "manifest.json").write_text(json.dumps(other))
    with pytest.raises(DataError, match="format 'other'"):
        Manifest.load(tmp_path)


def test_the_prompt_is_read_where_one_was_put_in_front(tmp_path):
    assert prompt_of(tmp_path) is None
    for content, expected in (
        ("[]", None),
        ('{"config": {}}', None),
        ('{"config": {"prompt": "q: "}}', "q: "),
    ):
        (tmp_path / "manifest.json").write_text(content)
        assert prompt_of(tmp_path) == expected
