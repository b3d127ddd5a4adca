"""The tiny encoders of tests/encoder."""

from tests.encoder.conftest import plain_vocabulary as plain_vocabulary
