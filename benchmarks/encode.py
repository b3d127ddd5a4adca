"""Encoding texts compared with sentence-transformers, onnxruntime and OpenVINO, in one run.

All have the same weights, texts and threads.

    python benchmarks/encode.py --model hf:intfloat/multilingual-e5-small --prompt "query: "
    python benchmarks/encode.py --model MODEL --threads 2 --busy --output encode.json
    python benchmarks/encode.py --model MODEL --engines st int8 --sets tatoeba --limit 50 \
        --repeats 1
    python benchmarks/encode.py --model MODEL --instructions avx2

Texts are sentences of several languages and of English, which is what each language's neighbors are
searched among, in random order: ``tatoeba`` short ones, ``flores`` long ones, ``mixed`` (the
default) 2,000 of both, of twelve languages. Every engine has a
process of its own that lives through the run, and they work in turns, ``--repeats`` times. From
texts to vectors of length 1, tokenization included. With one thread processor time counts, with
several wall time: look at that on an idle machine only.

- sentences/s, tokens/s: medians; tokens are real ones, without padding;
- roofline: the linear layers' operations for these tokens, over the most that the core can do in
  the engine's dtype, which a loop of C measures (``ceiling.py``); in int8 ours computes attention
  in bfloat16, in the last layers its projections too, so that it can't reach 100 %;
- cosine: with float32 of sentence-transformers, mean and lowest; same nearest: share of the texts
  that have the same nearest one among the translations as with float32;
- stream: 32 texts at a time as they come, unsorted; query: one short text, median of milliseconds;
- memory: the most the process ever had; busy: the share of its throughput that is left while one
  core has other work.

An engine of ours with amx in its name is that variant of the encoding kernel and nothing else;
where this machine does not run it, it is shown as not on this machine, and is in no ratio.
With ``--instructions`` no engine, ours or another, finds more than the named ones: what a laptop or
an older server would give, see ``lesser_processor.py``.

The ratios of the medians come last, with the targets; those of speed are for the kind of processor
that they were set for (``machine_class.py``), and left out elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import lesser_processor
import numpy as np
from ceiling import ceilings
from machine_class import AMX, AVX2, OTHER, ZEN, machine_class

import peers

OURS = ("float32", "bfloat16", "int8")
TILES = tuple(f"{dtype} amx" for dtype in OURS)
"""Our kernels on AMX's tiles, and on nothing else."""
SETS = {
    "tatoeba": ("deu", "fra", "rus", "cmn", "ara", "tha", "tur", "swh"),
    "flores": (
        "deu_Latn",
        "fra_Latn",
        "rus_Cyrl",
        "zho_Hans",
        "arb_Arab",
        "tha_Thai",
        "tur_Latn",
        "swh_Latn",
    ),
    "mixed": (
        ("deu", "deu_Latn"),
        ("fra", "fra_Latn"),
        ("rus", "rus_Cyrl"),
        ("cmn", "zho_Hans"),
        ("ara", "arb_Arab"),
        ("tha", "tha_Thai"),
        ("tur", "tur_Latn"),
        ("swh", "swh_Latn"),
        ("jpn", "jpn_Jpan"),
        ("kor", "kor_Hang"),
        ("hin", "hin_Deva"),
        ("vie", "vie_Latn"),
    ),
}
"""Codes of languages: Tatoeba's, FLORES's, or both."""
LIMITS = {"tatoeba": 200, "flores": 200, "mixed": 54}
"""Sentences of each language by default; of both sources in ``mixed``."""
STREAM_TEXTS = 32
QUERIES = 40
MEBIBYTE = 2**20
EXACT = (0.9999, 0.999)
"""Mean and lowest cosine with float32 of what counts as the same vectors."""
Options = argparse.Namespace


class Targets(NamedTuple):
    """Required speed relative to other engines; None without a target."""

    over_sentence_transformers: Mapping[str, float]
    """Targets of this library's engines."""
    stream: float | None = None
    """The same of bfloat16, in a stream."""
    int8_over_bfloat16: float | None = None
    over_onnxruntime: Mapping[str, float] = MappingProxyType({})
    """Targets of this library's engines over onnxruntime in the same dtype."""


TARGETS = {
    AMX: Targets({"float32": 2.8, "bfloat16": 7.5, "int8": 9.0}, int8_over_bfloat16=1.0),
    ZEN: Targets({"float32": 3.5, "bfloat16": 7.0, "int8": 9.0}, 9.0, int8_over_bfloat16=1.5),
    AVX2: Targets({}, over_onnxruntime={"float32": 1.3, "int8": 1.0}),
    OTHER: Targets({}),
}
"""By class of the machine."""
ONNXRUNTIME = {"float32": "onnx", "int8": "onnx int8"}
EXACT_GRAPH = 1.3
"""Required speed of bfloat16 relative to the fastest graph of equal vectors."""
OPENVINO_ON_TILES = 2.0
"""The same of OpenVINO in bfloat16, where both may use tiles."""


class Texts(NamedTuple):
    """A set, and for each language which of its texts are translations of which."""

    texts: list[str]
    pairs: list[tuple[list[int], list[int]]]


def read_pair(name: str, code: str, options: Options) -> tuple[list[str], list[str]]:
    """Read sentences and their English translations from ``tatoeba`` or ``flores``."""
    if name == "tatoeba":
        path = options.data / "tatoeba_laser" / f"{code}-eng.tsv"
        rows = [line.split("\t")[:2] for line in path.read_text(encoding="utf-8").splitlines()]
        return [row[0] for row in rows], [row[1] for row in rows]
    other, english = (
        (options.data / "flores200_devtest" / f"{side}.txt").read_text(encoding="utf-8")
        for side in (code, "eng_Latn")
    )
    return other.splitlines(), english.splitlines()


def read_texts(name: str, options: Options) -> Texts:
    """Return sentences of each language and their translations, each once, in random order.

    Forms that the model undoes in texts are undone here: sentence-transformers does not undo them,
    and all engines are to encode the same texts.
    """
    from interlingua.corpus.forms.text_forms import undo_forms

    settings = Path(options.model) / "vocabulary.json"
    forms = []
    if settings.is_file():
        forms = json.loads(settings.read_text(encoding="utf-8")).get("text_forms") or []
    limit = options.limit or LIMITS[name]
    sides: list[tuple[list[str], list[str]]] = []
    for code in SETS[name]:
        sources = zip(("tatoeba", "flores"), code, strict=True)
        if name != "mixed":
            sources = [(name, code)]
        for source, source_code in sources:
            other, english = read_pair(source, source_code, options)
            sides.append((undo_forms(other[:limit], forms), undo_forms(english[:limit], forms)))
    texts = list(
        dict.fromkeys(options.prompt + text for pair in sides for side in pair for text in side)
    )
    random.Random(0).shuffle(texts)
    row = {text: number for number, text in enumerate(texts)}
    return Texts(
        texts,
        [tuple([row[options.prompt + text] for text in side] for side in pair) for pair in sides],
    )  # type: ignore[misc]


def same_nearest(
    exact: np.ndarray, vectors: np.ndarray, pairs: Sequence[tuple[list[int], list[int]]]
) -> float:
    """Return the share of texts, of both sides, with the same nearest text on the other side."""
    same = [
        (exact[a] @ exact[b].T).argmax(1) == (vectors[a] @ vectors[b].T).argmax(1)
        for pair in pairs
        for a, b in (pair, pair[::-1])
    ]
    return float(np.concatenate(same).mean())


def flops_per_token(config: dict[str, Any]) -> int:
    """Count the operations of a BERT-shaped model's linear layers, from its ``config.json``."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    return 2 * config["num_hidden_layers"] * (4 * width * width + 2 * width * inner)


def dtype_of(engine: str) -> str:
    """Return the dtype in which an engine computes, by the engine's name."""
    if "int8" in engine:
        return "int8"
    if "bf" in engine:
        return "bfloat16"
    return "float32"


def timed(work: Callable[[], Any], threads: int) -> tuple[Any, float]:
    """Run work and time it: processor time of one thread, wall time of several."""
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    result = work()
    return result, clock() - start


# ---- the process of an engine ----


def load(engine: str, options: Options) -> peers.Encode:
    """Load an engine, and return its encode function."""
    import torch

    torch.set_num_threads(options.threads)
    if engine in peers.PEERS:
        return peers.load(engine, options.model, options.graphs, options.threads)
    from interlingua.encoder.encoder import Encoder

    encoder = Encoder.load(options.model)
    dtype, _, variant = engine.partition(" ")
    if variant:
        check_variant(variant, encoder.backbone, dtype)
    return lambda texts: encoder.encode(texts, prompt="", dtype=dtype)  # type: ignore[arg-type]


class NotOnThisMachineError(Exception):
    """An engine with a kernel that does not run here; another one would answer under its name."""


def check_variant(wanted: str, backbone: Any, dtype: str) -> None:
    """Check that the requested variant of the kernel is used.

    Raises:
        NotOnThisMachineError: it is not.
    """
    import torch

    from interlingua.encoder.executors.layers import choose_layer_executor
    from interlingua.kernels import variant

    if variant("layers") != wanted:
        raise NotOnThisMachineError(f"no kernel {wanted} runs here")
    choice = choose_layer_executor(backbone, getattr(torch, dtype))
    if choice.executor != "kernel":
        raise NotOnThisMachineError(choice.refused.get("kernel", f"{choice.executor} encodes"))


def serve(options: Options) -> None:
    """Run the tasks that arrive on standard input, one per line, and print their results.

    The first line that it gives is why the engine is not on this machine, or null.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    sets = {name: read_texts(name, options).texts for name in options.sets}
    try:
        encode = load(options.engine, options)
    except NotOnThisMachineError as reason:
        print(json.dumps(str(reason)), file=answers, flush=True)
        return
    print(json.dumps(None), file=answers, flush=True)
    short = sorted(sets[options.sets[0]], key=len)[:QUERIES]
    encode(short)
    for line in sys.stdin:
        what, name, path = json.loads(line)
        threads = options.threads if what != "busy" else max(2, options.threads)
        texts = sets.get(name, [])
        answer: Any = None
        if what == "memory":
            answer = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEBIBYTE
        elif what == "query":
            answer = statistics.median(
                1000 * timed(lambda text=text: encode([text]), threads)[1] for text in short
            )
        elif what == "stream":
            portions = [texts[at : at + STREAM_TEXTS] for at in range(0, len(texts), STREAM_TEXTS)]
            answer = timed(
                lambda portions=portions: [encode(portion) for portion in portions], threads
            )[1]
        else:
            vectors, answer = timed(lambda texts=texts: encode(texts), threads)
            if path:
                np.save(path, vectors)
        print(json.dumps(answer), file=answers, flush=True)


class Engine:
    """A process that runs one engine."""

    def __init__(self, name: str, options: Options, arguments: Sequence[str]) -> None:
        command = [
            sys.executable,
            __file__,
            *arguments,
            "--graphs",
            str(options.graphs),
            "--engine",
            name,
        ]
        limits = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS")}
        if name in TILES:
            # The kernel also where a trial finds another executor faster: its rate is wanted.
            limits |= {"INTERLINGUA_KERNELS": "amx", "INTERLINGUA_EXECUTOR": "kernel"}
        environment = (
            os.environ | limits | {"TOKENIZERS_PARALLELISM": str(options.threads > 1).lower()}
        )
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def missing(self) -> str | None:
        """Return the reason if this machine lacks the engine, else None. Call once, first."""
        return self._answer("load")

    def ask(self, what: str, name: str = "", path: Path | None = None) -> float:
        """Run a task in the process, and return its number."""
        request = json.dumps([what, name, path and str(path)])
        print(request, file=self.process.stdin, flush=True)
        return float(self._answer(f"{what} {name}"))

    def _answer(self, what: str) -> Any:
        """Return the next line of the process.

        Raises:
            SystemExit: it ended.
        """
        if not (answer := self.process.stdout.readline()):  # type: ignore[union-attr]
            raise SystemExit(f"an engine ended while it did {what}; what it printed is above")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


@contextlib.contextmanager
def busy_core() -> Iterator[None]:
    """Keep the first available core busy."""
    core = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    burner = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


# ---- the run ----


def measure(options: Options, engines: dict[str, Engine], folder: Path) -> dict[str, Any]:
    """Time all engines in turns; ``found[what][set][engine]`` is a list of seconds."""
    found: dict[str, Any] = {
        what: {name: {engine: [] for engine in engines} for name in options.sets}
        for what in ("all", "stream", "busy")
    }
    found["query"] = {engine: [] for engine in engines}
    for repeat in range(options.repeats):
        for engine, process in engines.items():
            for name in options.sets:
                path = folder / f"{engine} {name}.npy" if repeat == 0 else None
                found["all"][name][engine].append(process.ask("all", name, path))
                if engine in ("st", *OURS):
                    found["stream"][name][engine].append(process.ask("stream", name))
            found["query"][engine].append(process.ask("query"))
        print(f"  turn {repeat + 1} of {options.repeats} done", file=sys.stderr, flush=True)
    found["memory"] = {engine: process.ask("memory") for engine, process in engines.items()}
    if options.busy:
        for engine, process in engines.items():
            if engine in ("st", *OURS):
                for name in options.sets:
                    with busy_core():
                        found["busy"][name][engine].append(process.ask("busy", name))
    return found


def summary(
    found: dict[str, Any], sets: dict[str, Texts], tokens: dict[str, int], flops: int, folder: Path
) -> Any:
    """Summarize the times of each engine by set: ``table[set][engine]``.

    ``found["ceilings"]`` is operations per second by dtype, empty where they can't be measured.
    """
    ceilings, table = found["ceilings"], {}
    for name, texts in sets.items():
        exact = np.load(
            folder / f"{'st' if 'st' in found['query'] else next(iter(found['query']))} {name}.npy"
        )
        table[name] = {}
        for engine, seconds in found["all"][name].items():
            vectors, taken = np.load(folder / f"{engine} {name}.npy"), statistics.median(seconds)
            cosines = (exact * vectors).sum(1)
            table[name][engine] = row = {
                "sentences_per_second": len(texts.texts) / taken,
                "tokens_per_second": tokens[name] / taken,
                "cosine_mean": float(cosines.mean()),
                "cosine_lowest": float(cosines.min()),
                "largest_difference": float(np.abs(exact - vectors).max()),
                "same_nearest": same_nearest(exact, vectors, texts.pairs),
                "query_milliseconds": statistics.median(found["query"][engine]),
                "memory_mebibytes": found["memory"][engine],
            }
            if ceilings:
                row["roofline"] = tokens[name] / taken * flops / ceilings[dtype_of(engine)]
            if found["stream"][name][engine]:
                row["stream_sentences_per_second"] = len(texts.texts) / statistics.median(
                    found["stream"][name][engine]
                )
            if found["busy"][name][engine]:
                row["busy"] = taken / statistics.median(found["busy"][name][engine])
    return table


class Check(NamedTuple):
    """A number by set and in all, and what it should be."""

    words: str
    by_set: dict[str, float]
    overall: float
    target: float | None
    """None where none was set for this machine's kind."""
    most: bool = False
    """True if the target is an upper limit."""

    @property
    def met(self) -> bool | None:
        """Check of the target; None without one."""
        if self.target is None:
            return None
        return self.overall <= self.target if self.most else self.overall >= self.target


def ratio(
    words: str,
    table: Any,
    target: float | None,
    over: str,
    under: str,
    key: str = "sentences_per_second",
) -> Check:
    """Compare two engines by set, and by the geometric mean."""
    by_set = {name: rows[over][key] / rows[under][key] for name, rows in table.items()}
    return Check(words, by_set, math.exp(statistics.fmean(map(math.log, by_set.values()))), target)


def checks(table: Any, machine: str) -> list[Check]:
    """Compare the measured engines with the targets.

    Args:
        table: by set and engine.
        machine: its class.
    """
    there = set(next(iter(table.values())))
    found = speed_over_sentence_transformers(table, there, TARGETS[machine])
    found += speed_over_graphs(table, there, machine)
    if {"int8", "bfloat16"} <= there:
        goal = TARGETS[machine].int8_over_bfloat16
        between = ratio("int8 / bfloat16", table, goal, "int8", "bfloat16")
        # On tiles int8 is never to be the slower one, in no set.
        if machine == AMX:
            lowest = min(between.by_set.values())
            between = between._replace(words="int8 / bfloat16, lowest", overall=lowest)
        found.append(between)
    found += closeness(table, there) + memory(table, there)
    for engine, target in TARGETS[machine].over_onnxruntime.items():
        peer = ONNXRUNTIME[engine]
        if {engine, peer} <= there:
            found.append(ratio(f"{engine} / {peer}", table, target, engine, peer))
    return found + one_query(table, there)


def speed_over_sentence_transformers(table: Any, there: set[str], targets: Targets) -> list[Check]:
    """Compare the speed with sentence-transformers, for each dtype and for a stream."""
    found = []
    for engine in OURS:
        if {engine, "st"} <= there:
            goal = targets.over_sentence_transformers.get(engine)
            found.append(ratio(f"{engine} / sentence-transformers", table, goal, engine, "st"))
    if {"bfloat16", "st"} <= there:
        key = "stream_sentences_per_second"
        words = "bfloat16 / sentence-transformers, stream"
        found.append(ratio(words, table, targets.stream, "bfloat16", "st", key))
    return found


def speed_over_graphs(table: Any, there: set[str], machine: str) -> list[Check]:
    """Compare bfloat16 with OpenVINO on tiles, else with the fastest graph of equal vectors."""
    if "bfloat16" not in there:
        return []
    if machine == AMX:
        peer = "openvino bf16"
        if peer not in there:
            return []
        return [ratio(f"bfloat16 / {peer}", table, OPENVINO_ON_TILES, "bfloat16", peer)]
    graphs = [engine for engine in there if engine.partition(" ")[0] in ("onnx", "openvino")]
    exact = [
        graph
        for graph in graphs
        if all(rows[graph]["cosine_mean"] >= EXACT[0] for rows in table.values())
    ]
    if not exact:
        return []
    best = max(exact, key=lambda graph: ratio("", table, 0, graph, "bfloat16").overall)
    return [ratio(f"bfloat16 / {best}", table, EXACT_GRAPH, "bfloat16", best)]


def closeness(table: Any, there: set[str]) -> list[Check]:
    """Return the share of the roofline, and the closeness to sentence-transformers' vectors."""
    found = []

    def worst(words: str, engine: str, key: str, target: float, most: bool = False) -> None:
        by_set = {name: rows[engine][key] for name, rows in table.items()}
        found.append(Check(words, by_set, (max if most else min)(by_set.values()), target, most))

    has_ceiling = all("roofline" in row for rows in table.values() for row in rows.values())
    if "bfloat16" in there and has_ceiling:
        worst("bfloat16: share of the roofline", "bfloat16", "roofline", 0.7)
    if "st" not in there:
        return found
    if "bfloat16" in there:
        worst("bfloat16: mean cosine with float32", "bfloat16", "cosine_mean", EXACT[0])
        worst("bfloat16: lowest cosine", "bfloat16", "cosine_lowest", EXACT[1])
    if "float32" in there:
        worst("float32: largest difference", "float32", "largest_difference", 1e-5, most=True)
    if "int8" in there:
        worst("int8: same nearest neighbors", "int8", "same_nearest", 0.995)
    return found


def memory(table: Any, there: set[str]) -> list[Check]:
    """Compare the memory with that of sentence-transformers."""
    first = next(iter(table.values()))
    found = []
    for engine in OURS:
        if {engine, "st"} <= there:
            share = first[engine]["memory_mebibytes"] / first["st"]["memory_mebibytes"]
            words = f"{engine}: memory / sentence-transformers"
            found.append(Check(words, {}, share, 1.0, most=True))
    return found


def one_query(table: Any, there: set[str]) -> list[Check]:
    """Compare the milliseconds of one query with those of the fastest peer."""
    first = next(iter(table.values()))
    others = there - set(OURS) - set(TILES)
    found = []
    for engine in OURS:
        if engine in there and others:
            quickest = min(others, key=lambda other: first[other]["query_milliseconds"])
            query = first[engine]["query_milliseconds"] / first[quickest]["query_milliseconds"]
            found.append(Check(f"{engine}: one query / {quickest}", {}, query, 1.0, most=True))
    return found


def show(
    table: Any,
    texts: dict[str, Texts],
    tokens: dict[str, int],
    missing: dict[str, str],
    machine: str,
) -> None:
    """Print a table for each set, then the ratios."""
    for name, rows in table.items():
        print(
            f"\n{name}: {len(texts[name].texts):,} sentences,"
            f" {tokens[name] / len(texts[name].texts):.1f} tokens each"
        )
        print(
            f"  {'':<14}{'sent/s':>8}{'tokens/s':>10}{'roofline':>9}"
            f"{'cosine':>10}{'lowest':>9}{'nearest':>9}"
            f"{'stream':>8}{'query ms':>9}{'MiB':>7}{'busy':>6}"
        )
        for engine, row in rows.items():
            stream = (
                f"{row['stream_sentences_per_second']:.0f}"
                if "stream_sentences_per_second" in row
                else ""
            )
            busy = f"{row['busy']:.0%}" if "busy" in row else ""
            roofline = f"{row['roofline']:.0%}" if "roofline" in row else ""
            print(
                f"  {engine:<14}{row['sentences_per_second']:8.0f}{row['tokens_per_second']:10.0f}"
                f"{roofline:>9}{row['cosine_mean']:10.6f}{row['cosine_lowest']:9.5f}"
                f"{row['same_nearest']:9.4f}{stream:>8}{row['query_milliseconds']:9.2f}"
                f"{row['memory_mebibytes']:7.0f}{busy:>6}"
            )
        for engine, reason in missing.items():
            print(f"  {engine:<18} not on this machine: {reason}")
    print()
    for check in checks(table, machine):
        by_set = ", ".join(f"{name} {value:.4g}" for name, value in check.by_set.items())
        target = "no target here"
        if check.target is not None:
            verdict = "met" if check.met else "MISSED"
            target = f"target {'<=' if check.most else '>='} {check.target:<7g}{verdict}"
        print(f"{check.words:<45}{check.overall:9.4g}   {target:<25}{by_set}")


def run(options: Options, arguments: Sequence[str]) -> dict[str, Any]:
    """Measure, show and return all numbers."""
    from interlingua.encoder.directories.model_directory import read_json
    from interlingua.vocabulary.vocabulary import Vocabulary

    texts = {name: read_texts(name, options) for name in options.sets}
    folder = Path(options.model)
    vocabulary = Vocabulary.of_model(folder)
    tokens = {name: sum(map(len, vocabulary.encode(found.texts))) for name, found in texts.items()}
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options.graphs = options.graphs or scratch
        options.graphs.mkdir(parents=True, exist_ok=True)
        build = [
            sys.executable,
            peers.__file__,
            options.model,
            str(options.graphs),
            *options.engines,
        ]
        subprocess.run(
            build, check=True, stdout=sys.stderr
        )  # names that are no peers need no graph
        engines = {}
        for name in options.engines:
            engines[name] = Engine(name, options, arguments)
            stack.callback(engines[name].close)
        answers = {name: engine.missing() for name, engine in engines.items()}
        missing = {name: reason for name, reason in answers.items() if reason is not None}
        engines = {name: engine for name, engine in engines.items() if name not in missing}
        if not engines:
            raise SystemExit(f"none of these engines is on this machine: {', '.join(missing)}")
        found = measure(options, engines, scratch)
        # The rate is that of one core.
        cores = options.threads
        found["ceilings"] = {dtype: cores * rate for dtype, rate in ceilings().items()}
        table = summary(
            found, texts, tokens, flops_per_token(read_json(folder / "config.json")), scratch
        )
    limits = [f"{dtype} {rate / 1e9:.0f}" for dtype, rate in found["ceilings"].items()]
    limit = f"at most {', '.join(limits)} GFLOP/s" if limits else "no C compiler: no ceiling"
    print(f"{options.model}, {options.threads} thread(s); {limit}")
    show(table, texts, tokens, missing, machine_class())
    return {
        "model": options.model,
        "threads": options.threads,
        "tokens": tokens,
        "times": found,
        "table": table,
        "not_on_this_machine": missing,
    }


def main() -> None:
    from interlingua.storage.locate import locate

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", default="hf:intfloat/multilingual-e5-small", help="a directory or hf:owner/name"
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=[*peers.PEERS, *OURS, *TILES],
        default=[peer for peer in peers.PEERS if peer != "openvino fp32"] + list(OURS),
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["mixed"])
    parser.add_argument(
        "--limit",
        type=int,
        help="sentences of each language at most; by default 200, of mixed 54 of each source",
    )
    parser.add_argument("--prompt", default="", help="put before every text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5, help="turns; medians count")
    parser.add_argument(
        "--busy",
        action="store_true",
        help="measure also while one core has other work; two threads",
    )
    parser.add_argument(
        "--graphs", type=Path, help="folder to keep the peers' graphs in; built anew by default"
    )
    parser.add_argument("--output", type=Path, help="a .json file for all numbers")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("INTERLINGUA_DATA", "~/.cache/interlingua/data")),
    )
    parser.add_argument(
        "--instructions",
        choices=lesser_processor.LEVELS,
        help="what all engines find at most, on a processor with more",
    )
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.model = str(locate(options.model))
    options.data = options.data.expanduser()
    if options.engine:
        serve(options)
        return
    if options.busy and options.threads < 2:
        parser.error("--busy needs --threads 2: what matters is how they share the work")
    if options.instructions:
        with tempfile.TemporaryDirectory() as folder:
            lesser_processor.run_again(options.instructions, Path(folder))
    numbers = run(options, sys.argv[1:])
    if options.output:
        options.output.write_text(json.dumps(numbers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
