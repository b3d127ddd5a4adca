"""The tiny encoders of tests/encoder."""

from tests.encoder.conftest import encoder as encoder
from tests.encoder.conftest import plain_vocabulary as plain_vocabulary
from tests.encoder.conftest import random_batch as random_batch
