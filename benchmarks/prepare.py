"""Speed and memory of ``interlingua prepare`` on many pairs.

They are real ones with a running number inserted.

    python benchmarks/prepare.py --pairs 10_000_000
    python benchmarks/prepare.py --pairs 300_000 --plain --against-tokenizers

``--against-tokenizers`` prepares the same files once more, tokenized only by the tokenizers library
as before, and prints the ratio of the processor times and whether all bytes are equal.

The number follows every sixteen characters of both sides, so that neither exact nor
near-duplicate removal takes a pair when the corpus is gone through more than once. Prints pairs/s
of every stage and the peak memory above what the imports take (of this process, and of the largest
of the cleaning processes); then the same of a process that reads training batches from all over the
store. Needs some 1 GB of disk per million pairs.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import resource
import tempfile
import time
import unittest.mock
from itertools import count
from pathlib import Path

from interlingua.preparation.config import (
    DeduplicateConfig,
    PrepareConfig,
    SourceConfig,
    SplitConfig,
    VocabularyConfig,
)
from interlingua.storage.files import PathLike

MEBIBYTE = 1024  # ru_maxrss is in KiB
EVERY = 16
BATCHES, BATCH_SIZE = 2_000, 256


def numbered(text: str, number: int) -> str:
    """Insert the number after every sixteen characters of the text."""
    pieces = [text[start : start + EVERY] for start in range(0, len(text), EVERY)]
    return f" {number} ".join(pieces) + f" {number}"


def write_corpus(pairs_folder: Path, folder: Path, pairs: int, *, plain: bool) -> None:
    """Write a number of pairs and repeat the corpus as needed. Plain pairs have no numbers.

    Each of its files has one of the same name.
    """
    files = sorted(pairs_folder.glob("*.tsv"))
    if not files:
        raise SystemExit(f"{pairs_folder}: no .tsv file; give --data or set INTERLINGUA_DATA")
    number = 0
    for turn in count():
        for file in files:
            with (
                file.open(encoding="utf-8") as lines,
                (folder / file.name).open("a", encoding="utf-8") as out,
            ):
                for line in lines:
                    if plain:
                        out.write(line)
                    else:
                        source, target = line.rstrip("\n").split("\t")
                        out.write(f"{numbered(source, number)}\t{numbered(target, number)}\n")
                    number += 1
                    if number == pairs:
                        return
        print(f"  {number:,} pairs after pass {turn + 1}", flush=True)


def main() -> None:
    import os

    data = Path(os.environ.get("INTERLINGUA_DATA", "~/.cache/interlingua/data")).expanduser()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=lambda text: int(text.replace("_", "")), default=10_000_000)
    parser.add_argument(
        "--data", type=Path, default=data / "train-mix" / "pairs", help="folder of TSV files"
    )
    parser.add_argument(
        "--scratch", type=Path, default=None, help="where the corpus is written and prepared"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--plain", action="store_true", help="pairs as they are, once each, without numbers"
    )
    parser.add_argument(
        "--against-tokenizers",
        action="store_true",
        help="prepare once more, tokenized by the tokenizers library alone",
    )
    parser.add_argument(
        "--near", action=argparse.BooleanOptionalAction, default=True, help="near-duplicate removal"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        print(f"writing {options.pairs:,} pairs", flush=True)
        write_corpus(options.data, folder, options.pairs, plain=options.plain)
        seconds = run(folder, options)
        if options.against_tokenizers:
            compare(folder, options, seconds)


def configuration(folder: PathLike, options: argparse.Namespace, name: str) -> PrepareConfig:
    """Return the corpus's configuration, with a folder of that name for the output."""
    return PrepareConfig(
        output=Path(folder) / name,
        sources=(SourceConfig(paths=(Path(folder) / "*.tsv",), name="numbered"),),
        deduplicate=DeduplicateConfig(near=options.near),
        heldout=SplitConfig(pairs=100),
        validation=SplitConfig(pairs=100),
        vocabulary=VocabularyConfig(size=32_000),
        processes=options.processes,
    )


def processor_seconds() -> float:
    """Return the processor seconds of this process and of its finished children."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in usage)


def digest(folder: Path) -> str:
    """Return the SHA-256 of all names and bytes, without the manifest, which contains times."""
    content = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            content.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return content.hexdigest()


def compare(folder: Path, options: argparse.Namespace, seconds: float) -> None:
    """Prepare the same files with only the tokenizers library, and print both results.

    Args:
        folder: with the files, and what was prepared of them.
        options: of the command line.
        seconds: processor time that it took.
    """
    from interlingua.preparation.pipeline import prepare_corpus

    config = configuration(folder, options, "by_tokenizers")
    started = processor_seconds()
    with unittest.mock.patch.object(PrepareConfig, "tokenizing_threads", 0):
        prepare_corpus(config)
    before = processor_seconds() - started
    print(f"by tokenizers alone            {before:8.1f} s of processor")
    print(f"by SentencePiece               {seconds:8.1f} s of processor, {before / seconds:.2f}x")
    same = digest(folder / "prepared") == digest(config.output)
    print("all bytes are equal" if same else "THE BYTES DIFFER")


def run(folder: PathLike, options: argparse.Namespace) -> float:
    """Prepare the corpus, print its cost and return its processor time."""
    import sentencepiece  # noqa: F401  (imported here so that it counts as an import)
    import tokenizers  # noqa: F401

    from interlingua.preparation.pipeline import prepare_corpus
    from interlingua.vocabulary import sentencepiece_training  # noqa: F401

    config = configuration(folder, options, "prepared")
    imports = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    used_before = processor_seconds()
    manifest = prepare_corpus(config)
    seconds = time.perf_counter() - started
    used = processor_seconds() - used_before
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    for stage, spent in manifest.seconds.items():
        print(f"{stage:<30} {spent:8.1f} s {options.pairs / max(spent, 1e-9):12,.0f} pairs/s")
    print(f"{'all':<30} {seconds:8.1f} s {options.pairs / seconds:12,.0f} pairs/s")
    print(f"processor time                 {used:8.1f} s {options.pairs / used:12,.0f} pairs/s")
    print(
        f"training pairs                 {manifest.train:,} of {options.pairs:,}; dropped:"
        f" {manifest.dropped}"
    )
    above = (usage[0].ru_maxrss - imports) / MEBIBYTE
    print(f"peak memory above imports      {above:8.0f} MiB (imports {imports / MEBIBYTE:.0f})")
    if options.processes > 1:
        print(
            f"peak of a cleaning process     {usage[1].ru_maxrss / MEBIBYTE:8.0f} MiB, imports"
            " included"
        )
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(read_batches, (config.output / "train",))
    return used


def own_peak() -> int:
    """Return the peak resident memory of this process in KiB.

    ``ru_maxrss`` would start with that of its parent.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def read_batches(store: Path) -> None:
    """Read training batches like a run, and print speed and memory."""
    from interlingua.batches.language_mixture import ParallelPlan
    from interlingua.batches.token_store import TokenStore

    imports = own_peak()
    plan = ParallelPlan(TokenStore.open(store), global_batch_size=BATCH_SIZE, temperature=2.0)
    started = time.perf_counter()
    for step in range(BATCHES):
        plan.batch_at(step)
    seconds = time.perf_counter() - started
    above = (own_peak() - imports) / MEBIBYTE
    print(
        f"{f'{BATCHES} training batches':<30} {seconds:8.1f} s"
        f" {BATCHES * BATCH_SIZE / seconds:12,.0f} pairs/s"
    )
    print(f"peak memory above imports      {above:8.0f} MiB (imports {imports / MEBIBYTE:.0f})")


if __name__ == "__main__":
    main()
