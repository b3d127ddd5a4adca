from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.named_files import find_named_files, suffixed_files


def test_files_named_after_a_language(tmp_path):
    for name in ("German.txt", "pt-BR.txt.gz", "de.words", "readme.txt", "words.tsv"):
        (tmp_path / name).write_bytes(b"")
    assert {spelled: path.name for spelled, path in find_named_files(tmp_path).items()} == {
        "German": "German.txt",
        "pt-BR": "pt-BR.txt.gz",
    }
    assert suffixed_files(tmp_path) == {}


def test_files_that_end_with_a_language(tmp_path):
    for name in ("corpus.de", "corpus.en.xz", "notes.md"):
        (tmp_path / name).write_bytes(b"")
    found = suffixed_files(tmp_path)
    assert {spelled: path.name for spelled, path in found.items()} == {
        "de": "corpus.de",
        "en": "corpus.en.xz",
    }
    (tmp_path / "test.fr").write_bytes(b"")
    with pytest.raises(DataError, match=r"files of 2 texts \(corpus\.\*, test\.\*\)"):
        suffixed_files(tmp_path)
    (tmp_path / "test.fr").rename(tmp_path / "corpus.deu")
    (tmp_path / "corpus.de").rename(tmp_path / "corpus.en")
    with pytest.raises(DataError, match="the same language"):
        suffixed_files(tmp_path)
