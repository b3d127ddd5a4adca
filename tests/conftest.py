"""Tiny things that several folders of tests need, made on the spot: no hub, no network."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

# Vectors must not depend on which executor was faster a moment ago, and no test writes to the
# user's cache folder. What is unpacked into this one, 340 MB, serves the next run too.
os.environ["INTERLINGUA_EXECUTOR"] = "first"
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / f"interlingua-tests-{os.getuid()}")
ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("deu_Latn", "rus_Cyrl")
WORDS = 40


def translate(word: int, language: str) -> str:
    """Every word has one translation."""
    return f"{language[:2]}{word}"


def pairs(language: str, count: int, *, seed: int) -> list[tuple[str, str]]:
    """Sentences of invented words next to their translations."""
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

    from interlingua.encoder.vocabulary import Vocabulary

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
    from interlingua.batches.records import TokenStoreWriter

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
    (folder / "manifest.json").write_text(json.dumps({"name": "invented"}), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def emulated_tiles(tmp_path_factory) -> Path | None:
    """A folder of the kernels' AMX variants with tiles in memory.

    None where this processor has the instructions, or has no AVX-512, or where no compiler is.
    """
    from interlingua import kernels

    sources = Path(kernels.__file__).parent
    runs_amx, runs_avx512 = (
        kernels._load(sources / "layers.c", name) for name in ("amx", "avx512")
    )
    if runs_amx or not runs_avx512 or shutil.which("cc") is None:
        return None
    folder = tmp_path_factory.mktemp("emulated")
    header = ROOT / "tests" / "kernels" / "emulated_tiles.h"
    flags = [
        "-O2",
        "-shared",
        "-fPIC",
        "-fno-strict-aliasing",
        "-march=native",
        f'-DEMULATED_TILES="{header}"',
    ]
    for name in kernels.SOURCES:
        source = sources / f"{name}.c"
        output = ["-o", str(folder / f"{name}.amx.so"), f"-DDIGEST={kernels.digest(source)}u"]
        subprocess.run(["cc", *flags, *output, str(source)], check=True)
    return folder


@pytest.fixture(scope="session")
def emulated_matrices(tmp_path_factory) -> Path | None:
    """A folder of the kernels' variant ``i8mm`` with its products in plain C.

    None where this processor has no AVX2, which does the rest, or where no compiler is. Training
    has no such products.
    """
    from interlingua import kernels

    sources = Path(kernels.__file__).parent
    if not kernels._load(sources / "layers.c", "avx2") or shutil.which("cc") is None:
        return None
    folder = tmp_path_factory.mktemp("emulated_matrices")
    for path in sources.glob("*.[ch]"):
        shutil.copy(path, folder)
    products = (ROOT / "tests" / "kernels" / "emulated_matrices.h").read_text(encoding="utf-8")
    with (folder / "avx2.h").open("a", encoding="utf-8") as file:
        file.write(products)
    flags = ["-O2", "-shared", "-fPIC", "-fno-strict-aliasing", "-mfma", "-mavx2", "-DDIGEST=0u"]
    for name in ("layers", "neighbors"):
        output = ["-o", str(folder / f"{name}.i8mm.so")]
        subprocess.run(["cc", *flags, *output, str(folder / f"{name}.c")], check=True)
    return folder


@pytest.fixture
def use_variant(monkeypatch, emulated_tiles, emulated_matrices):
    """Has the kernels of one variant be used until the end of the test.

    AMX and I8MM are emulated where they are not there.
    """
    from interlingua import kernels

    folders = {"amx": emulated_tiles, "i8mm": emulated_matrices}

    def use(name: str) -> None:
        monkeypatch.setenv(kernels.VARIABLE, name)
        is_emulated = folders.get(name) is not None
        monkeypatch.setattr(kernels, "_load", emulated if is_emulated else load)
        kernels.find.cache_clear()

    def emulated(source: Path, variant: str) -> ctypes.CDLL | None:
        path = folders[variant] / f"{source.stem}.{variant}.so"
        if not path.is_file():
            return None
        return ctypes.CDLL(str(path))

    load = kernels._load
    yield use
    kernels.find.cache_clear()


@pytest.fixture(scope="module")
def mini_script():
    """Imports a script of experiments/mini by its name."""
    folder = ROOT / "experiments" / "mini"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module
    for name in {path.stem for path in folder.glob("*.py")} & set(sys.modules):
        del sys.modules[name]
