"""Markers by folder, and tiny fixtures of several folders, made on the spot: no hub, no network."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from tests import tiers

# Vectors must not depend on which executor was faster a moment ago. No test writes to the user's
# cache folder; the next run reuses what is unpacked into this one, 340 MB.
os.environ["INTERLINGUA_EXECUTOR"] = "first"
CACHE = Path(tempfile.gettempdir()) / f"interlingua-tests-{os.getuid()}"
os.environ["XDG_CACHE_HOME"] = str(CACHE)
if "PYTEST_XDIST_WORKER" in os.environ:
    # Read by torch, numpy and BLAS when they are imported: worker processes share the cores.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
ROOT = Path(__file__).resolve().parents[1]


def pytest_addoption(parser):
    parser.addoption(
        "--collected", type=Path, help="write the ids of all collected tests to this file"
    )
    parser.addoption(
        "--times", type=Path, help="write cases by marker and the time of each test to this file"
    )


def pytest_configure(config):
    for name, description in tiers.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {description}")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Times(config))


def pytest_ignore_collect(collection_path, config):
    """Import no file of which the mark expression deselects all tests."""
    if tiers.is_excluded(config.option.markexpr, collection_path):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for indices in tiers.grouped(item.nodeid.partition("[")[0] for item in items):
        group = [items[i] for i in indices]
        marker = tiers.folder_marker(group[0].path)
        markers = [marker] * len(group)
        if marker == "core":
            markers = tiers.case_markers(
                [parameters(item) for item in group], other_variants=other_variants()
            )
        for item, name in zip(group, markers, strict=True):
            item.add_marker(name)
    if config.option.collected and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        ids = "".join(f"{item.nodeid}\n" for item in items)
        config.option.collected.write_text(ids, encoding="utf-8")


def parameters(item):
    """Return the ids of a test's cases, by parameter: a variant's name, or an index."""
    if not hasattr(item, "callspec"):
        return {}
    indices, values = item.callspec.indices, item.callspec.params
    if "use_variant" not in item.fixturenames:
        return indices
    from interlingua.kernels import KERNEL_VARIANTS

    return {
        name: values[name]
        if isinstance(values[name], str) and values[name] in KERNEL_VARIANTS
        else index
        for name, index in indices.items()
    }


@functools.cache
def other_variants():
    """Return the variants of the kernels that this processor does not use by default."""
    from interlingua import kernels

    return set(kernels.KERNEL_VARIANTS) - {kernels.variant(source) for source in kernels.SOURCES}


class Times:
    """Counts of cases by marker and seconds by test, in the process that prints the summary."""

    def __init__(self, config):
        self.config = config
        self.cases = Counter()
        self.seconds = Counter()
        self.started = time.monotonic()

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or (report.when == "setup" and report.skipped):
            self.cases.update(tiers.MARKERS.keys() & report.keywords.keys())
        self.seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        counts = ", ".join(f"{name} {self.cases[name]:,}" for name in sorted(self.cases))
        terminalreporter.write_line(f"cases by marker: {counts}")
        if self.config.option.markexpr == "core":
            terminalreporter.write_line(
                "This was the core tier. `make test-all` runs everything, "
                "`.venv/bin/python -m pytest -m kernels` one other marker."
            )
        if self.config.option.times:
            found = {
                "tier": self.config.option.markexpr or "all",
                "seconds": time.monotonic() - self.started,
                "cases": self.cases,
                "tests": {name: round(took, 3) for name, took in self.seconds.most_common()},
            }
            self.config.option.times.write_text(json.dumps(found, indent=1), encoding="utf-8")


LANGUAGES = ("deu_Latn", "rus_Cyrl")
WORDS = 40


def translate(word: int, language: str) -> str:
    """Translate a word. Every word has one translation."""
    return f"{language[:2]}{word}"


def pairs(language: str, count: int, *, seed: int) -> list[tuple[str, str]]:
    """Return sentences of invented words with their translations."""
    draw = random.Random(f"{language} {seed}")
    sentences = [draw.choices(range(WORDS), k=draw.randint(2, 9)) for _ in range(count)]
    return [
        (
            " ".join(translate(word, language) for word in words),
            " ".join(translate(word, "eng_Latn") for word in words),
        )
        for words in sentences
    ]


@pytest.fixture(scope="session")
def word_vocabulary():
    """One id per invented word, with the special tokens and language tags of an EMS vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    from interlingua.vocabulary.vocabulary import Vocabulary

    tags = {code: f"<2{code[:3]}>" for code in (*LANGUAGES, "eng_Latn")}
    words = [translate(word, code) for code in tags for word in range(WORDS)]
    ids = {token: i for i, token in enumerate(["<pad>", "<unk>", "<MASK>", *tags.values(), *words])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<pad>", "<unk>", "<MASK>", *tags.values()])
    roles = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<MASK>"}
    return Vocabulary(tokenizer.to_str(), special_tokens=roles, language_tags=tags)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, word_vocabulary) -> Path:
    """A prepared corpus of two invented languages and English: 300 + 60 pairs of each."""
    from interlingua.batches.token_store import TokenStoreWriter

    folder = tmp_path_factory.mktemp("prepared")
    word_vocabulary.save(folder / "vocabulary")
    (folder / "valid_text").mkdir()
    for split, count, seed in (("train", 300, 0), ("valid", 60, 1)):
        with TokenStoreWriter(
            folder / split,
            vocabulary_size=word_vocabulary.size,
            vocabulary_digest=word_vocabulary.digest(),
        ) as writer:
            for language in LANGUAGES:
                sources, targets = zip(*pairs(language, count, seed=seed), strict=True)
                sides = word_vocabulary.encode(sources), word_vocabulary.encode(targets)
                writer.append((language, "eng_Latn"), *sides)
    for language in LANGUAGES:
        lines = "".join(f"{a}\t{b}\n" for a, b in pairs(language, 20, seed=2))
        (folder / "valid_text" / f"{language[:3]}-eng.tsv").write_text(lines, encoding="utf-8")
    from interlingua.storage.formats import CORPUS
    from interlingua.storage.record import write_record

    write_record(folder / "manifest.json", CORPUS, {"name": "invented"})
    return folder


@pytest.fixture(scope="session")
def emulated_tiles() -> Path | None:
    """Return a folder of the kernels' AMX variants with tiles in memory.

    None if this processor has the instructions, or has no AVX-512, or without a compiler.
    """
    from interlingua import kernels

    sources = Path(kernels.__file__).parent
    runs_amx, runs_avx512 = (
        kernels._load(sources / "layers.c", name) for name in ("amx", "avx512")
    )
    if runs_amx or not runs_avx512 or shutil.which("cc") is None:
        return None
    header = ROOT / "tests" / "kernels" / "emulated_tiles.h"
    flags = ["-march=native", f'-DEMULATED_TILES="{header}"']
    digests = {
        name: f"-DDIGEST={kernels.source_digest(sources / f'{name}.c')}u"
        for name in kernels.SOURCES
    }
    return compiled_once("amx", sources, header, flags, digests)


@pytest.fixture(scope="session")
def emulated_matrices(tmp_path_factory) -> Path | None:
    """Return a folder of the kernels' variant ``i8mm`` with its products in plain C.

    None if this processor has no AVX2, which does the rest, or without a compiler. Training has no
    such products.
    """
    from interlingua import kernels

    sources = Path(kernels.__file__).parent
    if not kernels._load(sources / "layers.c", "avx2") or shutil.which("cc") is None:
        return None
    header = ROOT / "tests" / "kernels" / "emulated_matrices.h"
    copied = tmp_path_factory.mktemp("emulated_matrices")
    for path in sources.glob("*.[ch]"):
        shutil.copy(path, copied)
    with (copied / "avx2.h").open("a", encoding="utf-8") as file:
        file.write(header.read_text(encoding="utf-8"))
    digests = dict.fromkeys(("layers", "neighbors"), "-DDIGEST=0u")
    return compiled_once("i8mm", copied, header, ["-mfma", "-mavx2"], digests)


def compiled_once(
    variant: str, sources: Path, header: Path, flags: list[str], digests: dict[str, str]
) -> Path:
    """Compile the kernels for an emulated variant, unless an earlier run or worker has.

    Args:
        sources: the folder of the C files.
        header: the emulation, of which the digest is part of the folder's name.
        digests: by kernel, the flag that sets the digest of its source.
    """
    texts = [path.read_bytes() for path in (*sorted(sources.glob("*.[ch]")), header)]
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=False)
    inputs = repr([texts, flags, digests, compiler.stdout, cpu_flags()])
    folder = CACHE / f"emulated-{variant}-{hashlib.sha256(inputs.encode()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    CACHE.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=CACHE))
    command = ["cc", "-O2", "-shared", "-fPIC", "-fno-strict-aliasing", *flags]
    for name, digest in digests.items():
        output = ["-o", str(made / f"{name}.{variant}.so")]
        subprocess.run([*command, *output, digest, str(sources / f"{name}.c")], check=True)
    try:
        made.rename(folder)
    except OSError:  # another worker was faster
        shutil.rmtree(made)
    return folder


def cpu_flags() -> str:
    """Return the instructions of this processor, which ``-march=native`` compiles for."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


@pytest.fixture
def use_variant(monkeypatch, request):
    """Return a function that selects a variant of the kernels until the end of the test.

    AMX and I8MM are emulated if the processor lacks them.
    """
    from interlingua import kernels

    emulations = {"amx": "emulated_tiles", "i8mm": "emulated_matrices"}

    def use(name: str) -> None:
        monkeypatch.setenv(kernels.KERNELS_VARIABLE, name)
        monkeypatch.setattr(kernels, "_load", load)  # which the emulations ask for what runs here
        folder = request.getfixturevalue(emulations[name]) if name in emulations else None
        if folder is not None:
            monkeypatch.setattr(kernels, "_load", emulated(folder))
        kernels.find_library.cache_clear()

    def emulated(folder):
        def load_emulated(source, variant):
            path = folder / f"{source.stem}.{variant}.so"
            return ctypes.CDLL(str(path)) if path.is_file() else None

        return load_emulated

    load = kernels._load
    yield use
    kernels.find_library.cache_clear()


@pytest.fixture(scope="module")
def mini_script():
    """Return a function that imports a script of experiments/mini by its name."""
    folder = ROOT / "experiments" / "mini"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module
    for name in {path.stem for path in folder.glob("*.py")} & set(sys.modules):
        del sys.modules[name]
