"""The quickstart from top to bottom: collect, prepare, train, measure, show."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import logging
import math
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from interlingua import __version__
from interlingua.config.registry import DEFAULT_MODEL
from interlingua.corpus.manifest import Manifest
from interlingua.encoder.backends.load import model_name
from interlingua.encoder.directories.model_directory import MODEL_ENTRIES, is_ours
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError, InterlinguaError
from interlingua.getting_started import tables
from interlingua.getting_started.catalogues import (
    CatalogueSource,
    Package,
    fetch_catalogues,
    packages,
)
from interlingua.getting_started.corpus import (
    collect_bitexts,
    quickstart_corpus_config,
    split_kinds,
)
from interlingua.getting_started.demo import Demonstration, demonstrate
from interlingua.getting_started.report import QuickstartFindings, write_findings, write_html
from interlingua.getting_started.scores import (
    LanguageScore,
    LineKind,
    averages,
    score_with_baselines,
)
from interlingua.getting_started.training import MESSAGE_MAX_TOKENS, VOCABULARY_SIZE, recipe
from interlingua.preparation.pipeline import prepare_corpus
from interlingua.runtime.progress import make_progress
from interlingua.storage.files import atomic_directory, remove_entries
from interlingua.storage.formats import QUICKSTART
from interlingua.storage.json_text import json_lines
from interlingua.storage.locks import exclusive
from interlingua.storage.record import holds_record, write_record
from interlingua.training.budget import BudgetError
from interlingua.training.loop import run_training
from interlingua.training.result import TrainResult

MEASURE_SECONDS = 35.0
"""Time reserved for measuring and reporting, but at most ``MEASURE_SHARE`` of the budget."""
MEASURE_SHARE = 0.2
MIN_TRAIN_SECONDS = 5.0
_RECORD = "quickstart.json"
_LANGUAGE = r"[a-z]{3}(_[A-Z][a-z]{3})?"
COLLECTED = rf"\w+/{_LANGUAGE}-{_LANGUAGE}\.tsv"
HELDOUT = rf"(sentences|names)/{_LANGUAGE}-{_LANGUAGE}\.tsv"
"""Paths of our files below ``collected/`` and ``heldout/``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The user's settings."""

    output: Path
    """Folder for everything that is made."""
    budget_seconds: float
    """Wall time of the whole job; training gets the time that the other parts do not need."""
    steps: int | None = None
    """Training steps; default: as many as fit into the budget."""
    catalogues: tuple[Path, ...] = ()
    """Further folders with .mo or .po files."""
    packages: tuple[Package, ...] | None = None
    """Packages to fetch; default: those of packages.toml."""
    cache: Path = Path("~/.cache/interlingua/quickstart")
    """Folder of fetched packages."""


class Stopwatch:
    """The wall time of each part of the job."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @property
    def total(self) -> float:
        """The seconds of all completed parts."""
        return sum(self.seconds.values())

    @contextlib.contextmanager
    def time(self, part: str) -> Iterator[None]:
        """Measure the time of a block."""
        start = time.perf_counter()
        yield
        self.seconds[part] = round(time.perf_counter() - start, 2)


def show_quickstart(settings: Settings, *, console: Console | None = None) -> QuickstartFindings:
    """Run the whole quickstart and show its results.

    The output folder gets ``collected/``, ``corpus/``, ``heldout/``, ``run/``, ``model/``,
    ``results/``, ``quickstart.json`` and ``report.html``.

    Args:
        settings: the user's choices.
        console: output console; stdout by default.

    Raises:
        DataError: there is no catalogue to learn from.
        ConfigError: the budget is too small to train at all, or the output folder holds other
            files.
    """
    output = settings.output
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output}: expected a folder, found a file; use another --output")
    with exclusive(output, remedy="use another --output"):
        return _quickstart(settings, console or Console(highlight=False))


def _quickstart(settings: Settings, console: Console) -> QuickstartFindings:
    output = settings.output
    watch = Stopwatch()
    # Before anything is written: the folder may hold a user's own files.
    _claim(output)
    with watch.time("collect"):
        tables.print_heading(
            console, 1, "Collecting translations from the catalogues of public packages"
        )
        sources, unavailable = _sources(settings)
        bitexts = _collect(sources, output)
        tables.show_sources(console, sources, unavailable)
    with watch.time("prepare"):
        tables.print_heading(
            console, 2, "Preparing: cleaning, deduplication, held-out messages, vocabulary"
        )
        manifest, folders = _prepare(bitexts, sources, output)
        tables.show_corpus(console, manifest)
    with watch.time("train"):
        tables.print_heading(console, 3, "Training an EMS encoder from scratch")
        # Training gets the time that the parts before it have left.
        result = _train(settings, output, settings.budget_seconds - watch.total)
    with watch.time("measure"):
        tables.print_heading(console, 4, "Measuring retrieval on messages that training never saw")
        parameters, scores, demonstrations = _measure(result, folders, output)
    findings = QuickstartFindings(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=dict(watch.seconds),
        sources=sources,
        unavailable=unavailable,
        # English is one of them, and is the other side of every pair.
        languages=len(manifest.languages) - 1,
        training_pairs=manifest.train,
        steps=result.step,
        pairs_seen=sum(result.exposure.values()),
        parameters=parameters,
        loss=_losses(result.run / "metrics.jsonl"),
        scores=scores,
        averages=averages(scores),
        demonstrations=demonstrations,
        commands=_commands(output),
        versions=_versions(),
    )
    write_findings(findings, output / _RECORD)
    write_html(findings, output / "report.html")
    tables.show_findings(console, findings, output)
    return findings


def _claim(output: Path) -> None:
    """Mark the output folder as ours before anything in it is replaced.

    A folder with other files is refused.
    """
    names = ("collected", "corpus", "heldout", "run", "model", "results", _RECORD, "report.html")
    there = [name for name in names if (output / name).exists()]
    if there and not holds_record(output / _RECORD, QUICKSTART):
        raise ConfigError(
            f"{output}: the folder contains other files ({', '.join(there)}), which would be lost;"
            " use another folder"
        )
    # The next run recognizes the folder by this file, even if this run is stopped.
    write_record(output / _RECORD, QUICKSTART, {"finished": False})


def _sources(settings: Settings) -> tuple[list[CatalogueSource], dict[str, str]]:
    """Return the fetched packages and the user's folders.

    A failed fetch is not an error while any source is left.
    """
    requested = settings.packages
    if requested is None:
        requested = packages()
    cache = settings.cache.expanduser()
    sources: list[CatalogueSource] = []
    unavailable: dict[str, str] = {}
    if requested:
        with make_progress() as progress:
            sources, unavailable = fetch_catalogues(requested, cache, progress=progress)
    sources += [CatalogueSource(name=str(folder), folder=folder) for folder in settings.catalogues]
    if not sources:
        why = next(iter(unavailable.values()), "no package was specified")
        raise DataError(f"no catalogues were found ({why}); pass a folder with --catalogues DIR")
    return sources, unavailable


def _collect(sources: Sequence[CatalogueSource], output: Path) -> dict[str, dict[str, Path]]:
    # An earlier run may have had sources that this run does not have.
    remove_entries(output / "collected", COLLECTED)
    with make_progress() as progress:
        return collect_bitexts(sources, output / "collected", progress=progress)


def _prepare(
    bitexts: Mapping[str, Mapping[str, Path]], sources: Sequence[CatalogueSource], output: Path
) -> tuple[Manifest, dict[LineKind, Path]]:
    config = quickstart_corpus_config(
        bitexts,
        sources,
        output / "corpus",
        vocabulary_size=VOCABULARY_SIZE,
        max_tokens=MESSAGE_MAX_TOKENS,
    )
    manifest = prepare_corpus(config, overwrite=True, progress=True)
    # ``prepare`` holds out sentences and names together; they are scored separately.
    remove_entries(output / "heldout", HELDOUT)
    folders = split_kinds(output / "corpus" / "heldout", output / "heldout")
    if "sentences" not in folders:
        raise DataError(
            "not enough sentences for held-out data; add more catalogues with --catalogues DIR"
        )
    return manifest, folders


def _train(settings: Settings, output: Path, seconds_left: float) -> TrainResult:
    seconds = seconds_left - min(MEASURE_SECONDS, MEASURE_SHARE * settings.budget_seconds)
    # A number of steps overrides the budget.
    if settings.steps is None and seconds < MIN_TRAIN_SECONDS:
        raise ConfigError(
            f"--budget-seconds {settings.budget_seconds:g} leaves {max(0.0, seconds):.0f} s for"
            f" training; pass at least {settings.budget_seconds - seconds + MIN_TRAIN_SECONDS:.0f}"
        )
    config = recipe(
        output / "corpus",
        output / "run",
        max_steps=settings.steps,
        budget_seconds=seconds if settings.steps is None else None,
    )
    try:
        result = run_training(config, resume="never", progress=True)
    # The error's message names a key of a config, which the user of this command has not written.
    except BudgetError as error:
        # The time of the other parts, and of one step.
        enough = settings.budget_seconds - seconds + error.needed_seconds
        raise ConfigError(
            f"--budget-seconds {settings.budget_seconds:g} leaves {seconds:.0f} s for training,"
            f" not sufficient for one step; pass at least {math.ceil(enough)}"
        ) from error
    if result.interrupted:
        raise InterlinguaError(
            "stopped during training; to resume, run: interlingua train"
            f" {output / 'run'}/config.toml"
        )
    return result


def _measure(
    result: TrainResult, folders: Mapping[LineKind, Path], output: Path
) -> tuple[int, list[LanguageScore], list[Demonstration]]:
    """Return the number of weights, the scores and the demonstrations."""
    assert result.model is not None
    # A copy under a name of its own, which the commands at the end show.
    with atomic_directory(
        output / "model", overwrite=True, ours=is_ours, entries=MODEL_ENTRIES
    ) as folder:
        shutil.copytree(result.model, folder, dirs_exist_ok=True)
    encoder = Encoder.load(output / "model")
    with make_progress() as progress, _errors_only():
        scores = score_with_baselines(
            encoder,
            folders,
            name=model_name(str(output / "model")),
            output=output,
            progress=progress,
        )
        demonstrations = demonstrate(encoder, folders["sentences"])
    parameters = sum(weight.numel() for weight in encoder.parameters())
    return parameters, scores, demonstrations


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
    """Silence the warning that a displayed message is cut.

    The result files contain the number of scored messages that were cut.
    """
    logger = logging.getLogger("interlingua")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _losses(metrics: Path) -> list[tuple[int, float]]:
    records = [record for _, record in json_lines(metrics)]
    return [(record["step"], record["loss"]) for record in records if record["kind"] == "train"]


def _commands(output: Path) -> list[str]:
    model = output / "model"
    config = output / "run" / "config.toml"
    return [
        "# embed a file of your own, one sentence a line",
        f"interlingua embed {model} FILE.txt -o FILE.npy",
        "# measure again, or measure any other model on the same held-out sentences",
        f"interlingua evaluate {model} --suite tatoeba --data {output / 'heldout' / 'sentences'}",
        "# train the same model for an hour",
        f"interlingua train {config} --set run.output={output / 'longer'} --set"
        " run.budget_seconds=3600",
        "# use it from sentence-transformers, after pip install sentence-transformers",
        'python -c "from sentence_transformers import SentenceTransformer as S;'
        f" print(S('{model}').encode('Hi'))\"",
        "# your own parallel text: interlingua prepare --help, interlingua train --help",
        f"# or start with {DEFAULT_MODEL}, the model that comes with interlingua: more than 50"
        " languages, no training",
        "interlingua mine NEWS.de.txt NEWS.en.txt -o pairs.tsv",
        "# search your documents with it in five lines: docs/how-to/search-your-documents.md",
    ]


def _versions() -> dict[str, str]:
    libraries = ("torch", "numpy", "scikit-learn")
    found = {name: importlib.metadata.version(name) for name in libraries}
    return {"interlingua": __version__, "Python": platform.python_version(), **found}
