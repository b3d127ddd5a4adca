"""Vectors that stay in a folder, so that further runs with one model embed each text once."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.protocol import Encode
from interlingua.evaluation.key_index import KEY_BYTES
from interlingua.evaluation.vector_files import VectorFiles
from interlingua.mining.vectors import PORTION


class StoredEncode:
    """An encode function that embeds only the texts without a stored vector.

    Args:
        encode: returns the vectors of texts.
        files: the stored vectors of this model.
    """

    def __init__(self, encode: Encode, files: VectorFiles) -> None:
        self.encode = encode
        self.files = files

    def __call__(
        self, texts: Sequence[str], *, language: str | None = None
    ) -> Float32[ndarray, "n d"]:
        """Return one vector per text, in order."""
        keys = [_key(language, text) for text in texts]
        rows = self.files.find(keys)
        missing = {
            key: text for key, text, row in zip(keys, texts, rows.tolist(), strict=True) if row < 0
        }
        new = list(missing.items())
        # Each portion is stored before the next one is embedded: a run that is killed loses one
        # portion.
        for first in range(0, len(new), PORTION):
            portion = new[first : first + PORTION]
            vectors = self.encode([text for _, text in portion], language=language)
            found = np.asarray(vectors, np.float32)
            self.files.append([key for key, _ in portion], found, np.zeros(len(portion), bool))
        return self.files.vectors(self.files.find(keys))


@contextlib.contextmanager
def kept_vectors(encode: Encode, folder: Path, identity: str) -> Iterator[Encode]:
    """Yield an encode function that keeps its vectors in a folder.

    Args:
        encode: returns the vectors of texts.
        folder: it contains a folder of vectors for each model.
        identity: of the model and its settings. Vectors with another identity are not used.
    """
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    files = VectorFiles.shared(folder / f"kept-{digest}")
    try:
        yield StoredEncode(encode, files)
    finally:
        files.close(keep=True)


def _key(language: str | None, text: str) -> bytes:
    """Return a digest of a text and its language."""
    joined = f"{language}\0{text}"
    return hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=KEY_BYTES).digest()
