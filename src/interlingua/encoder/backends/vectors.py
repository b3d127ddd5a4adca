"""Vectors that were computed before, looked up by their text."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.backends.foreign import Choices, ForeignEncoder
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.model_info import ModelInfo
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.storage.arrays import arrays_of, map_array
from interlingua.storage.files import COMPRESSIONS, open_text, sha256_file

log = logging.getLogger("interlingua")
PRECOMPUTED = "precomputed vectors"


class VectorsEncoder(ForeignEncoder):
    """A folder of ``NAME.npy`` files, (n, d), each next to a ``NAME.txt`` with its texts.

    The text of row i is in line i. For an array of a ``.npz`` file, NAME is the array's name, or
    the file's name if the file holds a single array. Texts are compared without regard to the white
    space around and between words. If a text occurs twice, its first vector is taken.

    Args:
        folder: with the files.
        name: the encoder's name in results.

    Raises:
        DataError: there are no such files, or they don't fit each other.
    """

    def __init__(self, folder: Path, *, name: str) -> None:
        if not folder.is_dir():
            raise DataError(
                "folder not found; expected a folder of NAME.npy and NAME.txt, one line per row",
                path=folder,
            )
        self._folder = folder
        self._arrays: list[Float32[ndarray, "n d"]] = []
        # From the hash of a text to its array and row: the texts themselves are not held.
        self._places: dict[bytes, tuple[int, int]] = {}
        digest = hashlib.sha256()
        unequal = 0
        for file, array_name, vectors in _arrays(folder):
            lines = _text_file(folder, array_name)
            unequal += self._add(lines, file, vectors)
            digest.update(f"{array_name} {sha256_file(lines)} {sha256_file(file)}\n".encode())
        if not self._arrays:
            raise DataError(
                "no .npy or .npz file in the folder; expected NAME.npy and NAME.txt, one line"
                " per row",
                path=folder,
            )
        if unequal:
            log.warning(
                "%s: %d texts occur again with another vector; the first vector of a text is used",
                folder,
                unequal,
            )
        self.dim = self._arrays[0].shape[1]
        self.info = ModelInfo(
            name=name, digest=digest.hexdigest(), library=PRECOMPUTED, dim=self.dim
        )

    @classmethod
    def load(cls, model: str, choices: Choices) -> VectorsEncoder:
        """Read the folder ``model``, see ``ForeignEncoder.load``."""
        cls.own_options(choices, "vectors")
        return cls(Path(model).expanduser(), name=choices.name)

    def _add(self, lines: Path, file: Path, vectors: Float32[ndarray, "n d"]) -> int:
        """Add one array; return the number of its texts that had another vector before."""
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise DataError(
                f"expected floating-point numbers, one row per text; found {vectors.dtype} of"
                f" shape {vectors.shape}",
                path=file,
            )
        if self._arrays and vectors.shape[1] != self._arrays[0].shape[1]:
            width = self._arrays[0].shape[1]
            raise DataError(
                f"expected vectors of width {width}, as in the other files; found width"
                f" {vectors.shape[1]}",
                path=file,
            )
        unequal = 0
        count = 0
        with open_text(lines) as text:
            for count, line in enumerate(text, 1):
                # The first place of a text is kept; a later one is only compared, to count it.
                place = self._places.setdefault(_key(line), (len(self._arrays), count - 1))
                if count <= len(vectors) and place != (len(self._arrays), count - 1):
                    known = [*self._arrays, vectors][place[0]][place[1]]
                    unequal += not np.array_equal(known, vectors[count - 1])
        if count != len(vectors):
            raise DataError(
                f"{count_of(len(vectors), 'rows')}, but {lines.name} has"
                f" {count_of(count, 'lines')}; write one line per row",
                path=file,
            )
        self._arrays.append(vectors)
        return unequal

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        if prompt:
            raise ConfigError(
                "precomputed vectors cannot receive a prompt; remove the prompt options"
            )
        places = [self._places.get(_key(text)) for text in texts]
        missing = [text for text, place in zip(texts, places, strict=True) if place is None]
        if missing:
            which = (
                f"{len(missing):,} of {len(texts):,} texts have no vector in the folder, the"
                f" first is {missing[0][:60]!r}"
            )
            raise DataError(
                f"{which}; embed the missing texts, or choose other --languages", path=self._folder
            )
        return np.stack([self._arrays[place[0]][place[1]] for place in places if place is not None])


def _arrays(folder: Path) -> Iterator[tuple[Path, str, Float32[ndarray, "n d"]]]:
    """Yield the file, name and content of every array; a ``.npy`` file stays on disk."""
    for file in sorted([*folder.glob("*.npy"), *folder.glob("*.npz")]):
        if file.suffix == ".npy":
            yield file, file.stem, map_array(file)
            continue
        found = dict(arrays_of(file))
        # A file's only array gets the file's name, since numpy calls it arr_0.
        if len(found) == 1:
            (array,) = found.values()
            yield file, file.stem, array
            continue
        for name, array in found.items():
            yield file, name, array


def _text_file(folder: Path, name: str) -> Path:
    for suffix in ("", *COMPRESSIONS):
        if (folder / f"{name}.txt{suffix}").is_file():
            return folder / f"{name}.txt{suffix}"
    raise DataError(
        f"{name}.txt not found; write the texts of {name} into it, one per line", path=folder
    )


def _key(text: str) -> bytes:
    """Return 16 bytes for a text, regardless of the white space around and between its words."""
    on_one_line = " ".join(text.split())
    return hashlib.blake2b(on_one_line.encode(errors="surrogatepass"), digest_size=16).digest()
