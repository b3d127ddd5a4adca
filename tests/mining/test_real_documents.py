"""Real documents, aligned by nothing but the letters they share: the Debian Reference and FLORES.

The packages of the Debian Reference are fetched with apt-get where that can be had.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from interlingua.alignment.align import Aligner
from interlingua.alignment.sentence_alignment import LinkCounts

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("INTERLINGUA_DATA") or Path.home() / ".cache/interlingua/data")
WIDTH = 4096


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location(
        "benchmark_align", ROOT / "benchmarks" / "align.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def encode(texts, *, language=None, report=None):
    """Encode as square roots of counts of three and four letters in a row."""
    counts = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        padded = f" {text.lower()} "
        for size in (3, 4):
            for start in range(len(padded) - size + 1):
                counts[row, zlib.crc32(padded[start : start + size].encode("utf-8")) % WIDTH] += 1
    counts = np.sqrt(counts)
    return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


@pytest.mark.data
@pytest.mark.parametrize(
    ("languages", "missing", "least"), [(("fr", "en"), 0.0, 0.97), (("de", "en"), 0.1, 0.75)]
)
def test_debian_reference(languages, missing, least, benchmark, tmp_path):
    kept = DATA / "debian_reference"
    folder = kept if kept.is_dir() else tmp_path
    try:
        pages = tuple(benchmark.fetch(language, folder) for language in languages)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the Debian Reference can't be had: {error}")
    source, target = benchmark.debian(pages, languages, limit=250, missing=missing)
    assert len(source.sentences) > 300
    links = Aligner(encode).align(source.sentences, target.sentences).links
    found = benchmark.right_links(links, source, target)
    assert found["precision"] > least
    assert found["recall"] > least


@pytest.mark.data
def test_flores_with_sentences_joined(benchmark):
    files = [DATA / "flores200_devtest" / f"{code}.txt" for code in ("nob_Latn", "dan_Latn")]
    if not files[0].is_file():
        pytest.skip("no FLORES here")
    lines = (file.read_text(encoding="utf-8").splitlines()[:400] for file in files)
    source, target, gold = benchmark.joined_lines(*lines)
    counts = LinkCounts.of(Aligner(encode).align(source, target).links, gold)
    assert counts.strict_scores.f1 > 0.95
    assert counts.lax_scores.f1 > 0.97


def test_joined_lines_are_gold(benchmark):
    lines = [[f"{code}{i}" for i in range(50)] for code in ("de", "en")]
    source, target, gold = benchmark.joined_lines(*lines)
    assert " ".join(source).split() == lines[0]
    assert " ".join(target).split() == lines[1]
    assert all(min(len(link.source), len(link.target)) == 1 for link in gold)
    assert {len(link.source) for link in gold} | {len(link.target) for link in gold} == {1, 2, 3}
    for link in gold:
        words = [
            " ".join(side[i] for i in numbers)
            for side, numbers in ((source, link.source), (target, link.target))
        ]
        assert words[0].replace("de", "") == words[1].replace("en", "")


def test_paragraphs_of_a_page(benchmark, tmp_path):
    page = "<p>One <b>bold</b> &amp; two.\nThree: Four.</p><td>no</td><p></p><p>Five? No.</p>"
    (tmp_path / "ch01.en.html").write_text(page, encoding="utf-8")
    found = benchmark.paragraphs(tmp_path, "en")
    assert found == ["One bold & two. Three: Four.", "", "Five? No."]
    assert benchmark.document(found, set()) == (
        ["One bold & two.", "Three:", "Four.", "Five?", "No."],
        [0, 0, 0, 2, 2],
    )
    assert benchmark.document(found, {0}) == (["Five?", "No."], [2, 2])
