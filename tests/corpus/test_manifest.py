import pytest

from interlingua.corpus.manifest import (
    LanguagePairRecord,
    Manifest,
    SourceFile,
    SourceRecord,
    prompt_of,
)
from interlingua.errors import DataError
from interlingua.storage.formats import CORPUS
from interlingua.storage.record import write_record

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
    path = tmp_path / "manifest.json"
    with pytest.raises(DataError, match=r"manifest\.json: .*interlingua prepare"):
        Manifest.load(tmp_path)
    for content in ("{", "[]", '{"format": "x"}', '{"format": "interlingua-corpus-1"}'):
        path.write_text(content)
        with pytest.raises(DataError, match=r"manifest\.json: .*interlingua prepare"):
            Manifest.load(tmp_path)
    write_record(path, CORPUS, {"created": 3})
    with pytest.raises(DataError, match="created"):
        Manifest.load(tmp_path)


def test_the_prompt_is_read_where_one_was_put_in_front(tmp_path):
    assert prompt_of(tmp_path) is None
    for content, expected in (({"config": {}}, None), ({"config": {"prompt": "q: "}}, "q: ")):
        write_record(tmp_path / "manifest.json", CORPUS, content)
        assert prompt_of(tmp_path) == expected
    (tmp_path / "manifest.json").write_text('{"format": "interlingua-corpus-1"}')
    with pytest.raises(DataError, match="corpus-1"):
        prompt_of(tmp_path)
