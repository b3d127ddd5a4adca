"""Training steps compared with sentence-transformers' trainer and MEXMA's released computation.

    python benchmarks/train.py --model hf:intfloat/multilingual-e5-small
    python benchmarks/train.py --model MODEL --what mexma --steps 2 --rounds 1 --json mexma.json

- ``contrastive``: MultipleNegativesRankingLoss in ``SentenceTransformerTrainer`` (its default,
  which is float32; bf16=True; the latter with pairs of like length in a batch) and ``infonce``;
- ``mexma``: padded batches and logits at all positions, in float32 and under bf16 autocast, and
  ``mexma``, with the model's vocabulary and with one trimmed to 32,000 entries;
- ``ems``: ``ems-base`` (the paper's size) and the same without its generative and without its
  contrastive term.

All see the same pairs in the same batches: ten languages with English from Tatoeba and from FLORES,
in random order; the same dropout, AdamW, learning rate. Each has processes of its own, in turns.
What counts is processor time with one thread, wall time with several; memory is the largest the
process ever had. Seconds are the median of the rounds. The first line says what the machine can do
in a matrix product: bf16 can gain no more than that over float32. The ratios come last, next to
what they should be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from machine_class import AMX, machine_class

LANGUAGES = ("deu_Latn", "fra_Latn", "rus_Cyrl", "arb_Arab", "swh_Latn", "tha_Thai", "jpn_Jpan",
"tur_Latn",
             "hin_Deva", "zho_Hans")  # fmt: skip
TATOEBA_CODES = {"arb_Arab": "ara", "zho_Hans": "cmn"}
SETS = {"contrastive": ("tatoeba", "flores"), "mexma": ("flores",), "ems": ("flores",)}
BATCH = {"contrastive": 64, "mexma": 16, "ems": 64}
VOCABULARY = {"mexma 32k": 32_000, "ems": 60_000}
LEARNING_RATE, WEIGHT_DECAY = 2e-5, 0.01
MAX_TOKENS = 256
WARM_UP = 2
"""Steps before those that are timed: in them memory is allocated that later ones reuse."""
Options = argparse.Namespace
Pairs = list[tuple[str, str, str]]


class Family(NamedTuple):
    """Something that is measured."""

    what: str
    words: str
    run: Callable[[Options, Pairs], Iterator[float]]
    """Function that runs a step on each batch of the pairs, and yields its loss."""
    changes: Mapping[str, Any] = MappingProxyType({})
    """Changes of the options."""


def read_pairs(options: Options) -> Pairs:
    """Read triples (English, other, language of the other) in random order."""
    data, found = options.data, []
    for code in LANGUAGES:
        if options.set == "tatoeba":
            path = data / "tatoeba_laser" / f"{TATOEBA_CODES.get(code, code[:3])}-eng.tsv"
            sides = [line.split("\t")[:2] for line in path.read_text(encoding="utf-8").splitlines()]
            pairs = [(english, other, code) for other, english in sides]
        else:
            english, other = (
                (data / "flores200_devtest" / f"{name}.txt")
                .read_text(encoding="utf-8")
                .splitlines()
                for name in ("eng_Latn", code)
            )
            pairs = [(a, b, code) for a, b in zip(english, other, strict=True)]
        found += pairs[: options.limit]
    random.Random(0).shuffle(found)
    needed = options.batch * (options.steps + WARM_UP)
    if len(found) < needed:
        raise SystemExit(
            f"{len(found)} pairs, but {needed} are needed; lower --steps or --batch, or raise"
            " --limit"
        )
    return found[:needed]


def st(options: Options, pairs: Pairs) -> Iterator[float]:
    """Time the steps of sentence-transformers' trainer; yield at the end of each."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from torch.utils.data import BatchSampler, SequentialSampler
    from transformers import TrainerCallback

    model = SentenceTransformer(str(options.model), device="cpu", trust_remote_code=False)
    model.max_seq_length = MAX_TOKENS
    if options.grouped:  # those to warm up stay
        first = WARM_UP * options.batch
        rest = sorted(
            pairs[first:], key=lambda pair: max(map(len, model.tokenizer(list(pair[:2])).input_ids))
        )
        pairs = pairs[:first] + rest
    rows = Dataset.from_dict(
        {"anchor": [a for a, _, _ in pairs], "positive": [b for _, b, _ in pairs]}
    )
    losses: list[float] = []

    class Note(TrainerCallback):
        def on_step_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            options.mark()

        def on_log(
            self, arguments: Any, state: Any, control: Any, logs: Any = None, **_: Any
        ) -> None:
            losses.extend([logs["loss"]] if "loss" in logs else [])

    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=options.batch,
            max_steps=options.steps + WARM_UP,
            learning_rate=LEARNING_RATE,
            weight_decay=WEIGHT_DECAY,
            lr_scheduler_type="constant",
            bf16=options.bf16,
            max_grad_norm=0.0,
            save_strategy="no",
            report_to="none",
            logging_steps=1,
            disable_tqdm=True,
            use_cpu=True,
            batch_sampler=lambda dataset, batch_size, drop_last, **_: BatchSampler(
                SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last
            ),
        )
        loss = MultipleNegativesRankingLoss(model)
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=rows, loss=loss, callbacks=[Note()]
        ).train()
    yield from losses


def ours(options: Options, pairs: Pairs) -> Iterator[float]:
    """Time the parts of ``interlingua train``, combined like in its loop.

    Tokens are there before, as in a corpus.
    """
    import torch

    from interlingua.batches.prefetch import Prefetcher
    from interlingua.config.registry import METHODS, resolve_name
    from interlingua.encoder.encoder import Encoder
    from interlingua.training.config import OptimizerConfig, RunConfig
    from interlingua.training.machine.engine import Engine
    from interlingua.training.machine.memory import freed_memory_kept
    from interlingua.training.optimization.optim import build_optimizer
    from interlingua.training.step import gradients

    run = RunConfig(
        output=Path("unused"),
        max_steps=1,
        device="cpu",
        precision=options.precision,
        executor=options.executor,
        threads=options.threads,
    )
    engine = Engine(run)
    torch.manual_seed(0)
    encoder = Encoder.load(options.model)
    if options.vocabulary:
        encoder = trimmed(encoder, pairs, options.vocabulary)
    if options.preset:
        from interlingua.encoder.modeling.backbone import BackboneConfig

        shape = BackboneConfig.preset(options.preset, vocab_size=encoder.vocabulary.size)
        encoder = Encoder.from_scratch(shape, encoder.vocabulary, initialization="bert")
    method = resolve_name(METHODS, options.method)
    objective = method(method.Config(**options.method_options), encoder).train()
    model = engine.setup(objective)
    config = OptimizerConfig(learning_rate=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    optimizer = build_optimizer(objective, config, sparse_gradients=engine.sparse_gradients)
    batches = list(token_batches(encoder, pairs, options.batch))
    with (
        freed_memory_kept(),
        Prefetcher(
            lambda step: [objective.prepared(batches[step])], stop_step=len(batches)
        ) as prefetched,
    ):
        for step, made in enumerate(prefetched):
            losses = gradients(model, objective, made, engine, seed=0, step=step)
            optimizer.step()
            optimizer.zero_grad()
            objective.after_step(step)
            yield losses["loss"].item()
            options.mark()


def trimmed(encoder: Any, pairs: Pairs, size: int) -> Any:
    """Trim the encoder's vocabulary to a size: the pairs' entries, then the first others."""
    from interlingua.vocabulary.trimming import ids_in_use

    kept = ids_in_use(encoder.vocabulary, [text for pair in pairs for text in pair[:2]])
    kept |= set(encoder.vocabulary.special_ids)
    others = (i for i in range(encoder.vocabulary.size) if i not in kept)
    return encoder.trim(kept | {next(others) for _ in range(size - len(kept))})


def token_batches(encoder: Any, pairs: Pairs, size: int) -> Iterator[Any]:
    """Yield the pairs as batches of the training plan."""
    from interlingua.batches.tokens import ParallelBatch, TokenBatch

    for step in range(len(pairs) // size):
        part, sides = pairs[step * size :][:size], []
        for side in (0, 1):
            codes = ["eng_Latn" if side == 0 else pair[2] for pair in part]
            ids = encoder.vocabulary.encode([pair[side] for pair in part], max_tokens=MAX_TOKENS)
            sides.append(TokenBatch.from_lists(ids, codes))
        yield ParallelBatch(*sides, step=step)


def padded_mexma(options: Options, pairs: Pairs) -> Iterator[float]:
    """Time MEXMA of stock parts: padded passes, torch's layers as head, all logits."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    from transformers import AutoModel

    from interlingua.batches.masking import IGNORED, mlm_mask
    from interlingua.encoder.encoder import Encoder
    from interlingua.functional.uniformity import koleo

    ours = Encoder.load(options.model)
    vocabulary, batches = ours.vocabulary, list(token_batches(ours, pairs, options.batch))
    del ours
    torch.manual_seed(0)
    encoder = AutoModel.from_pretrained(
        options.model,
        trust_remote_code=False,
        attention_probs_dropout_prob=0.0,
        add_pooling_layer=False,
        dtype=torch.float32,
    ).train()
    width, words = encoder.config.hidden_size, encoder.get_input_embeddings().weight
    layer = nn.TransformerEncoderLayer(width, 8, 3072, 0.1, "gelu", batch_first=True)
    head = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).train()
    bias = nn.Parameter(torch.zeros(len(words)))
    weights = [*encoder.parameters(), *head.parameters(), bias]
    optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
    hide = {
        "ratio": 0.4,
        "mask_id": vocabulary.mask_id,
        "vocab_size": vocabulary.size,
        "special_ids": vocabulary.special_ids,
    }

    def loss_of(batch: Any) -> torch.Tensor:
        clean, masked, labels, there = [], [], [], []
        for name, side in (("a", batch.a), ("b", batch.b)):
            (hidden, labels_of), (ids, real) = (
                mlm_mask(side, batch.place(name), **hide),
                side.padded(vocabulary.pad_id),
            )
            there.append(real)
            labels.append(side._replace(input_ids=labels_of).padded(IGNORED)[0])
            clean.append(encoder(ids, attention_mask=real.long()).last_hidden_state[:, 0])
            shown = hidden.padded(vocabulary.pad_id)[0]
            masked.append(encoder(shown, attention_mask=real.long()).last_hidden_state)
        loss = F.mse_loss(*(vector.float() for vector in clean))
        for own, other in ((0, 1), (1, 0)):
            states = torch.cat([clean[other][:, None], masked[own][:, 1:]], dim=1)
            logits = F.linear(head(states, src_key_padding_mask=~there[own]), words, bias)
            loss = (
                loss
                + F.cross_entropy(
                    logits.float().flatten(0, 1), labels[own].flatten(), ignore_index=IGNORED
                )
                / 2
            )
        return loss + 0.01 * (koleo(clean[0]) + koleo(clean[1])) / 2

    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()
        options.mark()


INFONCE = {"method": "infonce", "method_options": {"direction": "forward"}}
MEXMA = {"method": "mexma", "method_options": {"pooling": "any"}, "precision": "bf16"}
EMS = {"method": "ems", "preset": "ems-base", "vocabulary": VOCABULARY["ems"], "precision": "bf16"}
FAMILIES = {
    "st": Family("contrastive", "sentence-transformers, its default", st),
    "st bf16": Family("contrastive", "sentence-transformers, bf16", st, {"bf16": True}),
    "st bf16 grouped": Family(
        "contrastive", "the same, pairs of like length together", st, {"bf16": True,
        "grouped": True}
    ),
    "infonce fp32 kernel": Family("contrastive", "interlingua, float32, torch's own products", ours,
    {**INFONCE, "precision": "fp32", "executor": "kernel"}),
    "infonce fp32": Family("contrastive", "interlingua, float32", ours, {**INFONCE,
    "precision": "fp32"}), "infonce": Family("contrastive", "interlingua, bf16", ours, {**INFONCE,
    "precision": "bf16"}), "padded": Family("mexma", "padded, logits at all positions, float32",
    padded_mexma), "padded bf16": Family("mexma", "the same, bf16", padded_mexma, {"bf16": True}),
    "mexma": Family("mexma", "interlingua, bf16", ours, MEXMA),
    "mexma 32k": Family("mexma", "the same, vocabulary of 32,000", ours, {**MEXMA,
    "vocabulary": 32_000}), "ems": Family("ems", "EMS", ours, {**EMS,
    "method_options": {"languages": ("eng_Latn", *LANGUAGES)}}), "ems no xtr": Family("ems",
    "without its generative term", ours, {**EMS, "method_options": {"generative": "none"}}),
    "ems no contrast": Family(
        "ems", "without its contrastive term", ours,
        {**EMS, "method_options": {"languages": ("eng_Latn", *LANGUAGES), "contrastive": "none"}},
    ),
}  # fmt: skip
TARGETS = [  # slower, faster, of what, at least
    ("infonce fp32 kernel", "infonce fp32", "time", 1.0),
    ("st", "infonce", "time", 5.5),
    ("st bf16", "infonce", "time", 2.5),
    ("st bf16 grouped", "infonce", "time", 2.5),
    ("st", "infonce", "memory", 2.0),
    ("padded", "mexma", "time", 7.0),
    ("padded bf16", "mexma", "time", 3.0),
    ("padded", "mexma", "memory", 2.0),
    ("padded", "mexma 32k", "time", 12.0),
    ("ems no xtr", "ems", "time", 1 / 1.10),
    ("ems no contrast", "ems", "time", 1 / 1.10),
]
TARGETS_ON_TILES = {("st", "infonce"): 5.9, ("st bf16", "infonce"): 3.9,
                    ("st bf16 grouped", "infonce"): 5.0}  # fmt: skip
"""Targets of time with AMX in place of those: set on FLORES with 32 pairs a step."""


def targets_of(machine: str) -> list[tuple[str, str, str, float]]:
    """Return a machine class's targets: slower, faster, quantity, minimum ratio."""
    found = []
    for slower, faster, of, target in TARGETS:
        if machine == AMX and of == "time":
            target = TARGETS_ON_TILES.get((slower, faster), target)
        found.append((slower, faster, of, target))
    return found


def one(options: Options, clock: Callable[[], float] | None = None) -> dict[str, Any]:
    """Measure in this process: seconds of each timed step, memory, losses.

    Args:
        options: of the command line.
        clock: gives seconds; by default processor time with one thread, else wall time.
    """
    import torch

    torch.set_num_threads(options.threads)
    family = FAMILIES[options.family]
    if clock is None:
        clock = time.process_time if options.threads == 1 else time.perf_counter
    defaults = {
        "bf16": False,
        "grouped": False,
        "vocabulary": 0,
        "preset": "",
        "method_options": {},
        "executor": "auto",
    }
    marks: list[float] = []
    settings = argparse.Namespace(
        **{**vars(options), **defaults, **family.changes}, mark=lambda: marks.append(clock())
    )
    losses = list(family.run(settings, read_pairs(options)))
    seconds = [after - before for before, after in pairwise(marks[WARM_UP - 1 :])]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "mebibytes": peak, "loss": statistics.mean(losses[WARM_UP:])}


def machine(options: Options) -> dict[str, float]:
    """Measure GFLOP/s of matrix products with one layer's shape."""
    import torch

    torch.set_num_threads(options.threads)
    found = {}
    for name, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        x, w = torch.randn(4096, 384).to(dtype), torch.randn(1536, 384).to(dtype)
        times = []
        for _ in range(7):
            start = time.process_time()
            torch.nn.functional.linear(x, w)
            times.append((time.process_time() - start) / options.threads)
        found[name] = 2 * 4096 * 384 * 1536 / statistics.median(times) / 1e9
    return found


def child(options: Options, **chosen: str) -> Any:
    """Run this script for one family. Its own output is the last line."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        flags = [text for name, value in chosen.items() for text in (f"--{name}", value)]
        command = [
            sys.executable,
            "-W",
            "ignore",
            __file__,
            *sys.argv[1:],
            *flags,
            "--save",
            file.name,
        ]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(options.threads),
            "TOKENIZERS_PARALLELISM": "false",
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{chosen}: {done.stderr.strip() or done.stdout.strip()}")
        return json.loads(Path(file.name).read_text(encoding="utf-8"))


def measured(options: Options, what: str, name: str) -> dict[str, dict[str, float]]:
    """Measure all families on one set of pairs, in turns."""
    batch, found = options.batch or BATCH[what], {}
    families = [
        family
        for family in FAMILIES
        if FAMILIES[family].what == what and family in options.families
    ]
    for _ in range(options.rounds):
        for family in families:
            made = child(options, family=family, set=name, batch=str(batch))
            found.setdefault(family, []).append(made)
    print(f"{what}, {name}: {batch} pairs a step")
    summary = {}
    for family, rounds in found.items():
        time_ = (
            statistics.median(sum(r["seconds"]) / len(r["seconds"]) for r in rounds) / batch * 1000
        )
        summary[family] = {
            "time": time_,
            "memory": max(r["mebibytes"] for r in rounds),
            "loss": rounds[0]["loss"],
        }
        print(
            f"  {FAMILIES[family].words:<46}{time_:9.2f} s per 1,000"
            f" pairs{summary[family]['memory']:9.0f} MiB   loss {summary[family]['loss']:.3f}",
            flush=True,
        )
    return summary


def main() -> None:
    from interlingua.storage.locate import locate

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model",
        required=True,
        help="BERT-shaped backbone with a mask token: folder, hf:owner/name",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("INTERLINGUA_DATA", "~/.cache/interlingua/data")),
    )
    parser.add_argument("--what", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument(
        "--sets", nargs="+", choices=["tatoeba", "flores"], help="default: what suits each"
    )
    parser.add_argument(
        "--steps", type=int, default=4, help="timed steps of a round, after two to warm up"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, help="pairs a step; default: 64, for mexma 16")
    parser.add_argument(
        "--limit", type=int, default=1000, help="pairs read of each language, at most"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write everything there")
    for name in ("--family", "--set", "--save"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.model = locate(options.model)
    options.data = options.data.expanduser()
    if options.save:
        made = one(options) if options.family else machine(options)
        Path(options.save).write_text(json.dumps(made), encoding="utf-8")
        return
    rates = child(options)
    print(
        ", ".join(f"{name} {rate:.0f} GFLOP/s" for name, rate in rates.items())
        + f", {options.threads} thread(s)"
    )
    results = {
        what: {name: measured(options, what, name) for name in options.sets or SETS[what]}
        for what in options.what
    }
    if options.json:
        options.json.write_text(
            json.dumps({"machine": rates, "results": results}, indent=1) + "\n", encoding="utf-8"
        )
    for slower, faster, of, target in targets_of(machine_class()):
        what = FAMILIES[faster].what
        by_set = {
            name: found[slower][of] / found[faster][of]
            for name, found in results.get(what, {}).items()
            if slower in found and faster in found
        }
        if by_set:
            each = ", ".join(f"{name} {ratio:.2f}" for name, ratio in by_set.items())
            mean = statistics.geometric_mean(by_set.values())
            print(
                f"{of}, {slower} / {faster}: {mean:.2f} ({each}); should be at least {target:.2f}"
            )


if __name__ == "__main__":
    main()
