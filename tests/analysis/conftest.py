"""Line-aligned texts and encoders made on the spot."""

from __future__ import annotations

import pytest

from interlingua.analysis.subject import Subject
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.model_info import ModelInfo
from interlingua.evaluation.cache import CachedEncoder
from tests.encoder.conftest import tiny_vocabulary
from tests.evaluation.parallel_made import (
    LANGUAGES,
    LINES,
    Fixed,
    random_vectors,
    unit,
    write_lines,
)
from tests.tiny import tiny_encoder

__all__ = ["LANGUAGES", "LINES", "Fixed", "fixed_subject", "random_vectors", "unit", "write_lines"]


@pytest.fixture
def folder(tmp_path):
    return write_lines(tmp_path / "flores200_devtest")


@pytest.fixture
def framed_encoder():
    """Three layers and a vocabulary with <s> and </s> around a text; pools the first token."""
    vocabulary = tiny_vocabulary(frame=True)
    return tiny_encoder(vocabulary, "cls").eval()


@pytest.fixture
def subject(framed_encoder):
    own = OwnEncoder(framed_encoder, name="tiny")
    with CachedEncoder(own) as cached:
        yield Subject(cached, own.info, "", framed_encoder, 64)


def fixed_subject(vectors):
    return Subject(Fixed(vectors), ModelInfo(name="fixed", digest=None, library="test"))
