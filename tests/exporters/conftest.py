from __future__ import annotations

import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.exporters.verify import SAMPLES
from tests.encoder.builders import static_of
from tests.encoder.conftest import tiny_vocabulary


@pytest.fixture(scope="session")
def framed():
    """A vocabulary over the sample texts that puts <s> and </s> around each."""
    texts = [text for texts in SAMPLES.values() for text in texts]
    return tiny_vocabulary(frame=True, texts=texts, size=400)


@pytest.fixture
def encoder(framed):
    torch.manual_seed(0)
    return Encoder.from_scratch(
        BackboneConfig.preset("ems-tiny", vocab_size=framed.size), framed
    ).eval()


@pytest.fixture
def model(encoder, tmp_path):
    encoder.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def static_encoder(framed):
    return static_of(framed, 24)
