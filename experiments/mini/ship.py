r"""Turns a trained model into the files of the package interlingua-mini: eight bits, no prompts, a card, at most 60 MB.

    python experiments/mini/ship.py runs/mini/short/best --corpus prepared/mini --run runs/mini/long runs/mini/short \
      --texts "$INTERLINGUA_DATA/train-mix/pairs/*.tsv" -o models/mini/src/interlingua_mini/model

The weights become float8, as ``interlingua export --compact`` stores them: once, for interlingua, sentence-transformers
and onnxruntime. They are rounded so that the vectors of a sample of the texts stay, see rounding.py. OUT is replaced
only if the vectors stay and the files are small enough. Where the vocabulary is too large, ``--pieces N`` keeps the
most frequent pieces of the texts; others are then spelled in smaller ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import glob
import hashlib
import os
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rounding import rounded

import interlingua
from interlingua.corpus.formats import read_pairs
from interlingua.corpus.manifest import Manifest
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.training_record import training_record
from interlingua.encoder.vocabulary_trimming import id_counts, most_frequent_ids
from interlingua.errors import InterlinguaError
from interlingua.export.card import Provenance, model_card
from interlingua.export.graph_usage import graph_usage
from interlingua.export.verify import Verification

MOST_BYTES = 60_000_000
NAME = "interlingua-mini"
LICENSE = "MIT"
WEIGHTS = Path("onnx", "weights.safetensors")
LEAST_MEAN = 0.998
"""Cosine of the trained and the shipped model's vectors of a text, on average."""
LEAST_COSINE = 0.9999
"""Between the shipped model in interlingua and in sentence-transformers, which compute with the same weights."""
TEMPERATURE = 3.0
"""Languages count in the choice of pieces by the number of their tokens to the power of one over this."""
TEXTS_AT_ONCE = 10_000
SAMPLE = 16
"""Sentences of each language; rounding is fitted on half of them and checked on the others."""
SECONDS = ("seconds", "cpu_seconds")
"""Of a training run's record."""
USE = """## Use

```python
import interlingua

encoder = interlingua.load("mini")
vectors = encoder.encode(["The cat sits on the mat.", "Die Katze sitzt auf der Matte."])
print(vectors @ vectors.T)
```

or, with sentence-transformers:

```python
import interlingua_mini
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(str(interlingua_mini.folder()))
```

Texts need no prompt."""
ORIGIN = """## Origin and license

MIT. The model begins with the weights and the vocabulary of multilingual-e5-small (Copyright (c) Microsoft Corporation,
MIT), as `tools/get_backbone.py` writes them: out of a Python package in which matrices are rounded to 4 bits, see
`docs/data.md` of interlingua. Only text of licenses that allow it was trained on; each source keeps its own license."""
NUMBERS = """## Numbers

How good it is on every measure, next to other models and with the commands, is in `docs/results.md` of interlingua."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line; a user's error is one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the trained model's directory")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True, help="what it was trained on, for the card")
    parser.add_argument(
        "--run", type=Path, action="append", default=[], help="a training run, for its cost in the card"
    )
    parser.add_argument("--texts", nargs="+", required=True, help="bitext files or globs, as it was trained on")
    parser.add_argument("--pieces", type=int, help="entries of the vocabulary to keep; default: all")
    given = parser.parse_args(arguments)
    try:
        files = bitext_files(given.texts)
        ship(given.model, given.output, given.corpus, files=files, runs=given.run, pieces=given.pieces)
    except InterlinguaError as error:
        sys.exit(f"ship.py: {error}")


def ship(
    model: Path, output: Path, corpus: Path, *, files: Sequence[str], runs: Iterable[Path], pieces: int | None = None
) -> None:
    """Writes the package's model.

    Args:
        model: a trained one.
        output: the folder to replace.
        corpus: the prepared corpus.
        files: bitext that pieces are counted in, and that rounding takes its sample from.
        runs: folders of the training runs, in their order.
        pieces: entries of the vocabulary to keep; None = all.

    Raises:
        InterlinguaError: a file is missing, the vectors do not stay, or the files are too large.
    """
    manifest = Manifest.load(corpus)
    costs = [(run, cost(run)) for run in runs]
    encoder = Encoder.load(model)
    encoder.settings = dataclasses.replace(encoder.settings, prompts={}, default_prompt=None)
    if pieces is not None:
        encoder = with_frequent_pieces(encoder, pieces, files)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        trained, fitted, shipped = (Path(folder, name) for name in ("trained", "fitted", NAME))
        encoder.save(trained)
        texts = sample(files)
        rounded(encoder, texts[::2]).save(fitted)
        interlingua.export(fitted, output=shipped, compact=True, license=LICENSE, verify=False)
        check_size(shipped)
        check_rounding(trained, shipped, texts[1::2])
        between = compared(shipped)
        print("the shipped model in interlingua and elsewhere:", *between.table(), sep="\n")
        least = min(low.cosine for low in between.lowest["sentence-transformers"].values())
        if least < LEAST_COSINE:
            raise InterlinguaError(
                f"sentence-transformers reads other vectors (cosine {least:.6f}); nothing was written"
            )
        (shipped / "README.md").write_text(card(shipped, manifest, costs), encoding="utf-8")
        total = check_size(shipped)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(shipped, output)
    print(f"{output}: {total / 1e6:.1f} MB")


def bitext_files(patterns: Iterable[str]) -> list[str]:
    """The files that globs stand for.

    Raises:
        InterlinguaError: there are none.
    """
    files = {file for pattern in patterns for file in glob.glob(os.path.expandvars(pattern))}
    if not files:
        raise InterlinguaError("--texts: no file matches; name bitext, such as pairs/*.tsv")
    return sorted(files)


def sentences(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Language and text of both sides of all pairs."""
    for file in files:
        for pair in read_pairs(file):
            yield pair.source_language, pair.source
            yield pair.target_language, pair.target


def sample(files: Iterable[str]) -> list[str]:
    """As many sentences of each language, drawn at random, and the same at every call."""
    draw = random.Random(0)
    kept: dict[str, list[str]] = defaultdict(list)
    seen: Counter[str] = Counter()
    for language, text in sentences(files):
        seen[language] += 1
        if len(kept[language]) < SAMPLE:
            kept[language].append(text)
        elif (place := draw.randrange(seen[language])) < SAMPLE:
            kept[language][place] = text
    return [text for language in sorted(kept) for text in kept[language]]


def with_frequent_pieces(encoder: Encoder, pieces: int, files: Iterable[str]) -> Encoder:
    """The encoder with a smaller vocabulary.

    Raises:
        ConfigError: the characters in use alone are more.
    """
    vocabulary = encoder.vocabulary
    counts = defaultdict(lambda: np.zeros(vocabulary.size, dtype=np.int64))
    waiting: dict[str, list[str]] = defaultdict(list)
    for language, text in sentences(files):
        waiting[language].append(text)
        if len(waiting[language]) == TEXTS_AT_ONCE:
            counts[language] += id_counts(vocabulary, waiting.pop(language))
    for language, texts in waiting.items():
        counts[language] += id_counts(vocabulary, texts)
    return encoder.trim(most_frequent_ids(vocabulary, counts, pieces, temperature=TEMPERATURE)).eval()


def check_rounding(trained: Path, shipped: Path, texts: Sequence[str]) -> None:
    """Prints how far the shipped model is from the trained one, on texts that rounding was not fitted on.

    Raises:
        InterlinguaError: too far.
    """
    cosines = (Encoder.load(trained).encode(texts) * Encoder.load(shipped).encode(texts)).sum(axis=1)
    mean, least = float(cosines.mean()), float(cosines.min())
    print(f"trained and shipped: 1 - cosine {1 - mean:.1e} on average, {1 - least:.1e} at most, of {len(texts)} texts")
    if not mean >= LEAST_MEAN:
        raise InterlinguaError(f"rounding moves the vectors too far (mean cosine {mean:.4f}); nothing was written")


def compared(shipped: Path) -> Verification:
    """How far the vectors of all that reads the shipped model are from those of interlingua.

    Raises:
        CheckpointError: too far.
    """
    verification = interlingua.export(shipped, output=shipped, verify_only=True).verification
    assert verification is not None
    return verification


def check_size(folder: Path) -> int:
    """Bytes of all files.

    Raises:
        InterlinguaError: more than the package may have.
    """
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    total = sum(sizes.values())
    if total > MOST_BYTES:
        largest = sorted(sizes, key=lambda path: -sizes[path])[:2]
        shown = ", ".join(f"{path.relative_to(folder)} {sizes[path] / 1e6:.1f} MB" for path in largest)
        raise InterlinguaError(
            f"the files have {total / 1e6:.1f} MB ({shown}), more than {MOST_BYTES / 1e6:.0f}; keep fewer pieces of the"
            " vocabulary: --pieces N"
        )
    return total


def cost(run: Path) -> dict[str, object]:
    """What a run took.

    Raises:
        InterlinguaError: it is no run that has ended.
    """
    record = training_record(run / "best")
    if record is None or "seconds" not in record:
        raise InterlinguaError(f"{run}: no training run that has ended; its cost is not known")
    return record


def card(folder: Path, manifest: Manifest, costs: Sequence[tuple[Path, dict[str, object]]]) -> str:
    """README.md of the model."""
    encoder = Encoder.load(folder)
    provenance = Provenance(
        name=NAME,
        license=LICENSE,
        method=" then ".join(dict.fromkeys(str(record["method"]) for _, record in costs)) or None,
        languages=manifest.languages,
        sources=tuple((source.name, source.license, source.train) for source in manifest.sources if source.train),
    )
    usage = f"{USE}\n\n{graph_usage(encoder, ['compact'])}"
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    weights = f"The weights are float8 (e4m3); the SHA-256 of `{WEIGHTS.as_posix()}` is `{digest}`."
    parts = [model_card(encoder, provenance, usage=usage).rstrip(), weights, cost_section(costs), NUMBERS, ORIGIN]
    return "\n\n".join(parts) + "\n"


def cost_section(costs: Sequence[tuple[Path, dict[str, object]]]) -> str:
    """What training took, a row for each run."""
    rows = ["| run | method | steps | pairs | hours | CPU hours |", "|---|---|---:|---:|---:|---:|"]
    for run, record in costs:
        step, pairs = (f"{record[key]:,}" if key in record else "" for key in ("step", "pairs"))
        wall, processor = (f"{float(str(record[key])) / 3600:.2f}" if key in record else "" for key in SECONDS)
        rows.append(f"| {run.name} | {record['method']} | {step} | {pairs} | {wall} | {processor} |")
    return "\n".join(["## Cost", "", *rows])


if __name__ == "__main__":
    main()
