"""``interlingua documents`` with the default model: 12 languages, ten formats, no telling names."""

from __future__ import annotations

from pathlib import Path

import pytest

import interlingua
from tests.docs.document_texts import FORMATS, blocks_of, languages, write_document
from tests.docs.markdown import has_model

LANGUAGES = languages()[1:]

pytestmark = pytest.mark.skipif(not has_model(), reason="the default model is not installed")


@pytest.fixture(scope="module")
def encoder():
    return interlingua.load()


@pytest.mark.parametrize("number", range(len(LANGUAGES)), ids=LANGUAGES)
def test_documents_of_each_language_and_format_are_paired_and_linked(tmp_path, encoder, number):
    language = LANGUAGES[number]
    for own, shift in (("en", 4), (language, 0)):
        (tmp_path / own).mkdir()
        for at, blocks in enumerate(blocks_of(own)):
            format = FORMATS[(number + 3 * at + shift) % len(FORMATS)]
            name = f"x{at}" if own == "en" else f"y{(at + 1) % 3}"
            write_document(tmp_path / own, name, format, blocks, own)
    found = interlingua.documents(encoder, tmp_path / language, tmp_path / "en")
    paired = [tuple(Path(path).stem for path in one.paths) for one in found.report.paired]
    assert sorted(paired) == [("y0", "x2"), ("y1", "x0"), ("y2", "x1")]
    assert not found.report.left_out
    assert not found.report.notes
    assert all(one.coverage >= 0.75 for one in found.report.paired)
    assert len(found) >= 9


def test_all_formats_are_tried():
    tried = {FORMATS[(number + 3 * at) % len(FORMATS)] for number in range(12) for at in range(3)}
    assert tried == set(FORMATS)
    assert len(LANGUAGES) == 12
