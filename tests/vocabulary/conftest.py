"""The tiny encoders of tests/encoder."""

from tests.encoder.conftest import framed_vocabulary as framed_vocabulary
