"""Speed with several threads compared with one: encoding, training, preparing, mining.

    python benchmarks/threads.py --model FOLDER
    python benchmarks/threads.py --model FOLDER --jobs encode_bfloat16 train_fp32 --threads 1 2 4 8
    python benchmarks/threads.py --model FOLDER --jobs train_bf16 prepare_model --ceiling

Each job runs in a process of its own with a number of threads and of cores, in turns,
``--rounds`` times. A job does the same work for every number of threads. Wall time counts, without
imports, loading and a first small run; look at it on an idle machine only. The load of the machine
before the run is printed first. The ratios of the medians come last, next to the target: two
threads are to be at least 1.85 times as fast as one. With ``--ceiling`` as many independent
processes of one thread run as the largest of ``--threads``, each with the whole job on a core of
its own. The last column, ``copies``, has their mean seconds divided by their number. They share
clock, cache and memory, so this bound is tighter than the seconds of one process divided by the
number. It does not include parts of a job that only one core can do.

- ``encode_float32``, ``encode_bfloat16``, ``encode_int8``: 2,000 sentences of ``encode.py``'s mixed
  set;
- ``train_fp32``, ``train_bf16``: steps of 64 pairs with ``infonce``, as in ``train.py``;
- ``prepare``: pairs of the training mix: cleaned, deduplicated, tokenized with a vocabulary that is
  trained on them; threads are processes;
- ``prepare_model``: the same with the vocabulary of the model;
- ``mine``: sentences of FLORES in two languages, each embedded and searched;
- ``search``: exact neighbors, both ways, of 50,000 vectors in 50,000.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

Options = argparse.Namespace
TARGET = 1.85
STEPS = 6
TRAINING_PAIRS = 64
PREPARED_PAIRS = 1_000_000
VECTORS, DIMENSION = 50_000, 384


def encode(options: Options, dtype: str) -> float:
    """Return the seconds of encoding the mixed sample."""
    import encode as encoding

    options.limit, options.prompt = None, ""
    texts = encoding.read_texts("mixed", options).texts
    vectors = encoding.load(dtype, options)
    vectors(texts[:200])
    return seconds(lambda: vectors(texts))


def train(options: Options, family: str) -> float:
    """Return the seconds of training steps, without those of the warm-up."""
    import train as training

    options.batch, options.steps, options.limit, options.set = TRAINING_PAIRS, STEPS, 1000, "flores"
    options.family = family
    return sum(training.one(options, time.perf_counter)["seconds"])


def prepare(options: Options, vocabulary: str = "") -> float:
    """Return the seconds of preparing a corpus from files.

    Args:
        options: of the command line.
        vocabulary: a model, to take over its vocabulary; default: one is trained.
    """
    import prepare as preparing

    from interlingua.preparation.config import VocabularyConfig
    from interlingua.preparation.pipeline import prepare_corpus

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = options.data / "train-mix" / "pairs"
        preparing.write_corpus(pairs, folder, PREPARED_PAIRS, plain=True)
        settings = argparse.Namespace(near=True, processes=options.threads)
        config = preparing.configuration(folder, settings, "prepared")
        if vocabulary:
            config = dataclasses.replace(config, vocabulary=VocabularyConfig(path=vocabulary))
        return seconds(lambda: prepare_corpus(config))


def mine(options: Options) -> float:
    """Return the seconds of mining the translations of two texts."""
    import interlingua

    files = [
        options.data / "flores200_devtest" / f"{code}.txt" for code in ("deu_Latn", "eng_Latn")
    ]
    source, target = (file.read_text(encoding="utf-8").splitlines() for file in files)
    model = interlingua.load(options.model)
    languages = {"source_language": "deu_Latn", "target_language": "eng_Latn"}
    interlingua.mine(model, source[:100], target[:100], **languages)
    return seconds(lambda: interlingua.mine(model, source, target, **languages))


def search(options: Options) -> float:
    """Return the seconds of an exact search in both directions."""
    import knn

    x, y = knn.vectors(argparse.Namespace(x=None, size=VECTORS, width=DIMENSION))
    knn.search("compiled", x[:500], y[:500], 4)
    return seconds(lambda: knn.search("compiled", x, y, 4))


JOBS: dict[str, Callable[[Options], float]] = {
    "encode_float32": lambda options: encode(options, "float32"),
    "encode_bfloat16": lambda options: encode(options, "bfloat16"),
    "encode_int8": lambda options: encode(options, "int8"),
    "train_fp32": lambda options: train(options, "infonce fp32"),
    "train_bf16": lambda options: train(options, "infonce"),
    "prepare": prepare,
    "prepare_model": lambda options: prepare(options, str(options.model)),
    "mine": mine,
    "search": search,
}


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of a function."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def copies(options: Options, job: str, count: int) -> float:
    """Run a job ``count`` times at once, each with one thread on a core of its own.

    Returns:
        The seconds per job: the mean of the processes, divided by their number.
    """
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(lambda core: child(options, job, 1, core), range(count)))
    return statistics.mean(found) / count


def child(options: Options, job: str, threads: int, core: int = 0) -> float:
    """Run a job in a process with a number of threads, and return its seconds.

    Args:
        options: of the command line.
        job: its name.
        threads: of the job, and number of its cores.
        core: number of the first of them.

    Raises:
        SystemExit: the process failed.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    environment["TOKENIZERS_PARALLELISM"] = str(threads > 1).lower()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-W", "ignore", __file__, "--model", str(options.model)]
        command += ["--data", str(options.data), "--job", job, "--threads", str(threads)]
        command += ["--core", str(core), "--save", file.name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{job}: {done.stderr.strip() or done.stdout.strip()}")
        return float(json.loads(Path(file.name).read_text(encoding="utf-8")))


def measure(options: Options) -> None:
    """Run all jobs with each number of threads, in turns, and print the ratios."""
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} processors; seconds, median of rounds")
    heads = [f"{number:>2} threads" for number in options.threads]
    most = max(options.threads)
    if options.ceiling:
        heads.append(f"{most:>3} copies")
    print(" ".join([f"{'':<16}", *heads]))
    ratios = {}
    for job in options.jobs:
        found: dict[int, list[float]] = {number: [] for number in options.threads}
        of_copies: list[float] = []
        for _ in range(options.rounds):
            for number in options.threads:
                found[number].append(child(options, job, number))
            if options.ceiling:
                of_copies.append(copies(options, job, most))
        columns = [*found.values(), *([of_copies] if options.ceiling else [])]
        medians = [statistics.median(times) for times in columns]
        print(" ".join([f"{job:<16}", *(f"{median:10.2f}" for median in medians)]), flush=True)
        ratios[job] = [medians[0] / median for median in medians]
    print(f"times as fast as with {options.threads[0]}{target_of(options.threads)}")
    for job, times in ratios.items():
        print(" ".join([f"{job:<16}", *(f"{ratio:10.2f}" for ratio in times)]))


def target_of(threads: list[int]) -> str:
    """Return the target as text, if one and two threads are compared."""
    return f"; two threads should be {TARGET}" if threads[0] == 1 and 2 in threads else ""


def main() -> None:
    """Parse the command line and measure."""
    from interlingua.storage.locate import locate

    data = os.environ.get("INTERLINGUA_DATA", "~/.cache/interlingua/data")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="folder or hf:owner/name")
    parser.add_argument("--data", type=Path, default=Path(data), help="folder of the data sets")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ceiling", action="store_true", help="also run independent copies")
    parser.add_argument("--core", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--save", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.data = options.data.expanduser()
    if options.job is None:
        cores = len(os.sched_getaffinity(0))
        if options.ceiling and max(options.threads) > cores:
            parser.error(f"--ceiling needs a core per thread; this machine has {cores}")
        measure(options)
        return
    import torch

    options.model = locate(options.model)
    options.threads = options.threads[0]
    # Also for what takes all cores by default, such as the training of a vocabulary.
    cores = sorted(os.sched_getaffinity(0))[options.core :]
    os.sched_setaffinity(0, cores[: options.threads])
    torch.set_num_threads(options.threads)
    options.save.write_text(json.dumps(JOBS[options.job](options)), encoding="utf-8")


if __name__ == "__main__":
    main()
