"""Ready vectors of two teachers for English: their cosines' mean, in the first one's space.

    python experiments/mini/ensemble.py runs/mini/wide/bank-missing.txt models/mini-spelled \
        models/all-MiniLM-L6-v2 -o data/mini/english.npy

Both teachers' vectors, one after the other, have the mean of both cosines. As many of their
principal components as the first teacher has dimensions are turned to lie as near to its vectors as
a rotation can bring them: so a student that starts as the first teacher starts near its targets,
and its weights can be averaged with the trained ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import interlingua
from interlingua.storage.files import atomic_write


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "texts", type=Path, help="one sentence a line: those that a run lacks vectors of"
    )
    parser.add_argument("teachers", nargs=2, help="the first gives the space")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="NAME.npy; NAME.txt gets the sentences"
    )
    given = parser.parse_args()
    encoders = [interlingua.load(name) for name in given.teachers]
    if not given.texts.is_file():
        write(given.output, [], np.zeros((0, encoders[0].dim)))
        print(f"no sentences yet: train with {given.output} as the teacher, which writes them down")
        return
    texts = given.texts.read_text(encoding="utf-8").splitlines()
    first, second = (encoder.encode(texts, dtype=given.dtype) for encoder in encoders)
    vectors = joined(first, second)
    write(given.output, texts, vectors)
    kept = float((vectors**2).sum(axis=1).mean())
    near = float(
        (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) * first).sum(axis=1).mean()
    )
    print(
        f"{len(texts):,} sentences; {kept:.3f} of the squared length kept; cosine with the first"
        f" teacher {near:.3f}"
    )


def write(output: Path, texts: list[str], vectors: np.ndarray) -> None:
    """Write computed vectors in the format of ``anchor``."""
    with atomic_write(output, "wb") as file:
        np.save(file, vectors.astype(np.float16))
    with atomic_write(output.with_suffix(".txt")) as file:
        file.writelines(f"{text}\n" for text in texts)


def joined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return vectors of the first's width with the mean of both cosines.

    A rotation brings them as near to the first as can be.
    """
    both = np.concatenate([first, second], axis=1).astype(np.float64) / np.sqrt(2)
    components = np.linalg.eigh(both.T @ both)[1][:, ::-1][:, : first.shape[1]]
    narrow = both @ components
    left, _, right = np.linalg.svd(narrow.T @ first)
    return narrow @ (left @ right)


if __name__ == "__main__":
    main()
