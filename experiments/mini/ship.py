"""Turn a trained model into the files of interlingua-mini: packed, no prompts, 60 MB at most.

    python experiments/mini/ship.py runs/mini/mixed --corpus prepared/mini --run runs/mini/long \
        -o $PACKAGE/model

A stage that starts with the shipped model adds to its card: ``--before $PACKAGE/model``. When the
model was measured, card_numbers.py puts the numbers there.

``PACKAGE`` is models/mini/src/interlingua_mini. The vectors of tokens are stored in four bits,
other matrices in eight, as ``interlingua_mini.packing`` does. OUT is replaced only if the vectors
stay, if sentence-transformers reads the same ones, and if the files are small enough.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

import interlingua
from interlingua.corpus.manifest import Manifest
from interlingua.encoder.directories.training_record import training_record
from interlingua.encoder.encoder import Encoder
from interlingua.errors import InterlinguaError
from interlingua.exporters.card import Provenance, model_card
from interlingua.vocabulary.vocabulary import Vocabulary

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models" / "mini" / "src"))
from rounding import JOINED, PASSAGES, SENTENCES, calibration_texts, inputs_of_layers, round_layers

from interlingua_mini.packing import pack
from interlingua_mini.unpacking import DIGEST, PACKED_WEIGHTS, WEIGHTS, write_stock

MOST_BYTES = 60_000_000
NAME = "interlingua-mini"
LICENSE = "MIT"
TABLE = "embeddings.word_embeddings.weight"
LEAST_MEAN, LEAST_LOWEST = 0.999, 0.99
"""Limits of the cosines of the shipped and the trained model's vectors of held-out sentences."""
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

Texts need no prompt. The first 256, 128 or 64 numbers of a vector are a vector too: `encode(texts, truncate_dim=128)`."""
ORIGIN = """## Origin and license

MIT. The model begins with the weights and the vocabulary of multilingual-e5-small (Copyright (c) Microsoft Corporation,
MIT), as `tools/get_backbone.py` writes them: out of a Python package in which matrices are rounded to 4 bits, see
`docs/data.md` of interlingua. It was trained only on text with a license that allows it; each source keeps its own.

The scored pairs of the stages `sts` and `retrieval` are those of STS benchmark's training split that are image captions
or headlines, in 15 languages (scores and translations CC-BY-SA 4.0; headlines: European Media Monitor). The sets of STS12
to STS16, from which the benchmark was drawn, hold the same sentences, so they can't test this model.

The questions of the stage `retrieval` are the English ones of TyDi QA GoldP's training split (Apache-2.0), with their
passages and others of the same file, which are of Wikipedia (CC-BY-SA)."""
SCORED = """The stages `second` and `second_spread` also learned from scored pairs of JSTS (Japanese, CC-BY-SA 4.0), KLUE-STS (Korean,
CC-BY-SA 4.0), the Turku paraphrase corpus (Finnish and Swedish, CC-BY-SA 4.0) and MLQE-PE (grades of translations, CC0). The
table of training data is that of these stages. The stages before them read more pairs of the first sources: 299,979 of
tatoeba_challenge and 183,729 of indian_parallel. Few pairs are Icelandic: the error of its xsim is 14.3 %; use another model for Icelandic."""
COST = "## Cost"
NUMBERS = """## Numbers

How good it is on every measure, next to other models and with the commands, is in `docs/results.md` of interlingua."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line. Report a user's error in one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="the trained model's directory")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument(
        "--corpus", type=Path, required=True, help="what it was trained on, for the card"
    )
    parser.add_argument(
        "--run",
        type=Path,
        action="append",
        default=[],
        help="a training run, for its cost in the card",
    )
    parser.add_argument(
        "--before", type=Path, help="the shipped model that training began with, for its cost"
    )
    parser.add_argument(
        "--sources", type=Path, help="sources.json of second_data.py, for the sets in the card"
    )
    given = parser.parse_args(arguments)
    sets = given.sources and json.loads(given.sources.read_text(encoding="utf-8"))
    try:
        ship(
            *(given.model, given.output, given.corpus),
            runs=given.run,
            before=given.before,
            sets=sets or (),
        )
    except InterlinguaError as error:
        sys.exit(f"ship.py: {error}")


def ship(
    model: Path,
    output: Path,
    corpus: Path,
    *,
    runs: Iterable[Path],
    before: Path | None = None,
    sets: Sequence[dict[str, Any]] = (),
) -> None:
    """Write the package's model.

    Args:
        model: a trained one.
        output: the folder to replace.
        corpus: the prepared corpus.
        runs: folders of the training runs, in their order.
        before: the shipped model that they started with; its card has the runs before them.
        sets: sets of questions and passages, as second_data.py writes them.

    Raises:
        InterlinguaError: a file is missing, the vectors do not stay, or the files are too large.
    """
    manifest = Manifest.load(corpus)
    costs = [cost_of(run) for run in runs]
    if before is not None:
        costs = costs_in_card(before / "README.md") + costs
    small = Encoder.load(model)
    small.settings = dataclasses.replace(small.settings, prompts={}, default_prompt=None)
    small.vocabulary = without_blanks(small.vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        trained, packed, stock = (Path(folder, name) for name in ("trained", NAME, "stock"))
        small.save(trained)
        write_packed(trained, packed, corpus)
        stock.mkdir()
        write_stock(stock, packed)
        print(f"{model} and the shipped model, cosines: {check_rounding(model, stock, corpus)}")
        print("the shipped model here and elsewhere:", *same_elsewhere(stock), sep="\n")
        (packed / "README.md").write_text(
            card(stock, packed, manifest, costs, sets), encoding="utf-8"
        )
        (packed / DIGEST).write_text(digest(packed) + "\n", encoding="ascii")
        total = check_size(packed)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(packed, output)
    print(f"{output}: {total / 1e6:.1f} MB")


def write_packed(trained: Path, packed: Path, corpus: Path) -> None:
    """Write a trained model's directory with packed weights.

    The held-out texts of the corpus decide the rounding.
    """
    shutil.copytree(trained, packed)
    (packed / WEIGHTS).unlink()  # the small ones of folders behind pooling stay as they are
    inputs = inputs_of_layers(trained, calibration_texts(corpus))
    tensors = round_layers(load_file(trained / WEIGHTS), inputs)
    save_file(pack(tensors, four_bits=TABLE), packed / PACKED_WEIGHTS)
    (packed / PACKED_WEIGHTS).chmod(0o644)  # safetensors makes it readable by its owner only


def without_blanks(vocabulary: Vocabulary) -> Vocabulary:
    """Shorten the scores of a vocabulary to the digits that their 32 bits need."""
    definition = vocabulary.definition
    if definition["model"]["type"] == "Unigram":
        pieces = definition["model"]["vocab"]
        definition["model"]["vocab"] = [
            [piece, float(str(np.float32(score)))] for piece, score in pieces
        ]
    return Vocabulary(
        json.dumps(definition, ensure_ascii=False, separators=(",", ":")),
        special_tokens=vocabulary.special_tokens,
        pre_tokenizer=vocabulary.pre_tokenizer,
        text_forms=vocabulary.text_forms,
    )


def check_rounding(model: Path, stock: Path, corpus: Path) -> str:
    """Return the lowest and the mean cosine between the trained and the shipped model.

    Raises:
        InterlinguaError: the vectors have moved too far.
    """
    texts = []
    for path in sorted((corpus / "valid_text").iterdir()):
        rows = [line.split("\t")[:2] for line in path.read_text(encoding="utf-8").splitlines()]
        unused = rows[PASSAGES * JOINED : -SENTENCES]  # by the rounding
        for side in zip(*(unused[:20] or rows[:20]), strict=True):
            texts += [*side, " ".join(side[:JOINED])]
    cosines = (
        Encoder.load(model).encode(texts, prompt="") * Encoder.load(stock).encode(texts)
    ).sum(axis=1)
    shown = f"lowest {cosines.min():.4f}, mean {cosines.mean():.5f}, {len(texts):,} sentences"
    if cosines.mean() < LEAST_MEAN or cosines.min() < LEAST_LOWEST:
        raise InterlinguaError(f"eight bits move the vectors too far: {shown}; nothing was written")
    return shown


def same_elsewhere(stock: Path) -> list[str]:
    """Compare the vectors of sentence-transformers and interlingua.

    Raises:
        CheckpointError: they are others.
    """
    verification = interlingua.export(stock, output=stock, verify_only=True).verification
    assert verification is not None
    return verification.table()


def digest(folder: Path) -> str:
    """Compute the SHA-256 of all files, by name."""
    whole = hashlib.sha256()
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name != DIGEST
    ):
        whole.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def check_size(folder: Path) -> int:
    """Return the size of all files in bytes.

    Raises:
        InterlinguaError: more than the package may have.
    """
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    total = sum(sizes.values())
    if total > MOST_BYTES:
        largest = sorted(sizes, key=lambda path: -sizes[path])[:2]
        shown = ", ".join(
            f"{path.relative_to(folder)} {sizes[path] / 1e6:.1f} MB" for path in largest
        )
        raise InterlinguaError(
            f"the files have {total / 1e6:.1f} MB ({shown}), more than {MOST_BYTES / 1e6:.0f};"
            " lower max_size of prepare.toml's vocabulary"
        )
    return total


class Cost(NamedTuple):
    """Cost of a training run, as shown in the card."""

    run: str
    method: str
    steps: str
    pairs: str
    hours: str
    cpu_hours: str


def cost_of(run: Path) -> Cost:
    """Return the cost of a run.

    Raises:
        InterlinguaError: it is no run that has ended.
    """
    record = training_record(run / "best")
    if record is None or "seconds" not in record:
        raise InterlinguaError(f"{run}: no training run that has ended; its cost is not known")
    steps, pairs = (f"{record[key]:,}" if key in record else "" for key in ("step", "pairs"))
    wall, cpu = (
        f"{record[key] / 3600:.2f}" if key in record else "" for key in ("seconds", "cpu_seconds")
    )
    return Cost(run.name, str(record["method"]), steps, pairs, wall, cpu)


def costs_in_card(path: Path) -> list[Cost]:
    """Read the runs of a card that this script wrote.

    Raises:
        InterlinguaError: it has none.
    """
    section = path.read_text(encoding="utf-8").partition(COST)[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    if len(rows) < 3:
        raise InterlinguaError(f"{path}: no section {COST!r} with a run in it")
    return [Cost(*row) for row in rows[2:]]


def card(
    stock: Path,
    packed: Path,
    manifest: Manifest,
    costs: Sequence[Cost],
    sets: Sequence[dict[str, Any]],
) -> str:
    """Format the model's README.md."""
    provenance = Provenance(
        name=NAME,
        license=LICENSE,
        method=" then ".join(dict.fromkeys(cost.method for cost in costs)) or None,
        languages=manifest.languages,
        sources=tuple(
            (source.name, source.license, source.train)
            for source in manifest.sources
            if source.train
        ),
    )
    weights = hashlib.sha256((packed / PACKED_WEIGHTS).read_bytes()).hexdigest()
    stored = (
        "The package holds the vectors of tokens in four bits and other matrices in eight;"
        " `interlingua_mini.folder()` writes them out in float32 once. The SHA-256 of"
        f" `{PACKED_WEIGHTS}` is `{weights}`."
    )
    parts = [
        model_card(Encoder.load(stock), provenance, usage=USE).rstrip(),
        stored,
        cost_section(costs),
        NUMBERS,
        ORIGIN,
    ]
    if sets:
        parts += [SCORED, questions_section(sets)]
    return "\n\n".join(parts) + "\n"


def questions_section(sets: Sequence[dict[str, Any]]) -> str:
    """Format the sets of questions, or headings, with passages as a table."""
    rows = ["| questions and passages | license | questions |", "| --- | --- | ---: |"]
    for one in sets:
        license = one["license"] + ("; machine-translated" if one["machine_translated"] else "")
        rows.append(f"| {one['name']} | {license} | {one['questions']:,} |")
    left_out = [f"Left out: {one['withheld']}." for one in sets if one["withheld"]]
    return "\n".join([*rows, *(["", *left_out] if left_out else [])])


def cost_section(costs: Sequence[Cost]) -> str:
    """Format the cost of training as a table with a row per run."""
    rows = ["| run | method | steps | pairs | hours | CPU hours |", "|---|---|---:|---:|---:|---:|"]
    rows += [f"| {' | '.join(cost)} |" for cost in costs]
    return "\n".join([COST, "", *rows])


if __name__ == "__main__":
    main()
