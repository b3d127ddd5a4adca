"""Sentence alignment: the Debian Reference in two languages, and FLORES with joined sentences.

    python benchmarks/align.py MODEL --languages fr en      # gets the packages by apt-get download
    python benchmarks/align.py MODEL --debian FOLDER --flores flores200_devtest --languages de en

The Debian Reference is translated paragraph by paragraph, so it is known which paragraph every
sentence belongs to: a link is right if both sides are of the same paragraphs. ``--missing`` leaves
out a share of the paragraphs, half of them in either language. Of FLORES, in which lines
are translations of each other, runs of lines are joined at random on either side, which gives gold
links.
"""

from __future__ import annotations

import argparse
import html
import random
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from interlingua.alignment.align import Aligner
from interlingua.alignment.sentence_alignment import AlignConfig, Link, LinkCounts

FLORES_CODES = {
    "de": "deu_Latn",
    "en": "eng_Latn",
    "fr": "fra_Latn",
    "es": "spa_Latn",
    "zh": "zho_Hans",
}
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.S)
TAG = re.compile(r"<[^>]*>")
END = re.compile(r"(?<=[.!?:;])\s+(?=[^\W\d_a-zà-ÿ])")
"""Where a sentence ends, roughly: both languages are cut by the same rule, and often not at the
same places."""


class Document(NamedTuple):
    """Sentences, and the paragraph that each is of."""

    sentences: list[str]
    paragraphs: list[int]


def fetch(language: str, folder: Path) -> Path:
    """Unpacks a package of the Debian Reference; the folder with its pages.

    Raises:
        subprocess.CalledProcessError: there is no apt-get that could fetch it, or no network.
    """
    pages = folder / "usr" / "share" / "debian-reference"
    if not (pages / f"ch01.{language}.html").exists():
        name = f"debian-reference-{language}"
        subprocess.run(
            ["apt-get", "download", name], cwd=folder, check=True, capture_output=True, timeout=60
        )
        for package in folder.glob(f"{name}_*.deb"):
            subprocess.run(
                ["dpkg-deb", "-x", package.name, "."], cwd=folder, check=True, capture_output=True
            )
    return pages


def paragraphs(pages: Path, language: str) -> list[str]:
    """The text of all paragraphs, chapter by chapter."""
    found = []
    for page in sorted(pages.glob(f"ch*.{language}.html")):
        for match in PARAGRAPH.findall(page.read_text(encoding="utf-8")):
            found.append(" ".join(html.unescape(TAG.sub("", match)).split()))
    return found


def document(texts: Sequence[str], left_out: set[int]) -> Document:
    """Sentences of the paragraphs that are not left out."""
    kept = [(text, number) for number, text in enumerate(texts) if text and number not in left_out]
    parts = [(part, number) for text, number in kept for part in END.split(text)]
    return Document([part for part, _ in parts], [number for _, number in parts])


def debian(
    pages: tuple[Path, Path],
    languages: Sequence[str],
    *,
    limit: int | None,
    missing: float,
    seed: int = 0,
):
    """The document in both languages."""
    texts = [
        paragraphs(folder, language)[:limit]
        for folder, language in zip(pages, languages, strict=True)
    ]
    assert len(texts[0]) == len(texts[1])
    draw = random.Random(seed)
    gone = [
        {number for number in range(len(texts[0])) if draw.random() < missing / 2} for _ in range(2)
    ]
    return [document(side, out) for side, out in zip(texts, gone, strict=True)]


def right_links(
    links: Sequence[Link], source: Document, target: Document, most: float = 9.0
) -> dict[str, float]:
    """How many links join the same paragraphs, and how many sentences with a partner found it.

    Args:
        links: all.
        source: one side.
        target: the other.
        most: cost of the links that count.
    """
    right = joined = found = 0
    for link in links:
        if link.source and link.target and link.cost <= most:
            sides = (
                {source.paragraphs[i] for i in link.source},
                {target.paragraphs[j] for j in link.target},
            )
            joined += 1
            right += sides[0] == sides[1]
            found += len(link.source) if sides[0] == sides[1] else 0
    there = set(target.paragraphs)
    wanted = sum(number in there for number in source.paragraphs)
    return {"links": joined, "precision": right / max(1, joined), "recall": found / wanted}


def joined_lines(
    source: Sequence[str], target: Sequence[str], seed: int = 0
) -> tuple[list[str], list[str], list[Link]]:
    """Translated lines, some of them joined on one side, and the links that are right."""
    draw, at = random.Random(seed), 0
    sides: tuple[list[str], list[str]] = ([], [])
    links = []
    while at < len(source):
        size = min(draw.choices((1, 2, 3), (7, 2, 1))[0], len(source) - at)
        which = draw.randrange(2)  # this side stays as it is
        before = [len(side) for side in sides]
        for number, lines in enumerate((source, target)):
            part = [line.strip() for line in lines[at : at + size]]
            sides[number].extend(part if number == which else [" ".join(part)])
        links.append(
            Link(*(tuple(range(a, len(side))) for a, side in zip(before, sides, strict=True)), 0.0)
        )
        at += size
    return sides[0], sides[1], links


def timed(aligner: Aligner, source: Sequence[str], target: Sequence[str]):
    """The alignment and the processor seconds it took."""
    start = time.process_time()
    found = aligner.align(source, target)
    return found, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--languages", nargs=2, default=["fr", "en"])
    parser.add_argument(
        "--debian", type=Path, help="folder to unpack the packages in, or with them unpacked"
    )
    parser.add_argument("--flores", type=Path, help="folder with deu_Latn.txt, eng_Latn.txt ...")
    parser.add_argument("--limit", type=int, help="paragraphs at most")
    parser.add_argument("--lines", type=int, help="lines of FLORES at most")
    parser.add_argument(
        "--missing",
        type=float,
        default=0.0,
        help="share of paragraphs left out, half in each language",
    )
    parser.add_argument("--max-sentences", type=int, default=4)
    parser.add_argument("--skip-quantile", type=float, default=AlignConfig().skip_quantile)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--prompt")
    options = parser.parse_args()

    import torch

    from interlingua.encoder.backends.load import encode_function

    torch.set_num_threads(1)
    encode = partial(
        encode_function(options.model, dtype=options.dtype), prompt=options.prompt, normalize=True
    )
    config = AlignConfig(max_sentences=options.max_sentences, skip_quantile=options.skip_quantile)
    codes = [FLORES_CODES.get(language, language) for language in options.languages]
    aligner = Aligner(encode, config, source_language=codes[0], target_language=codes[1])
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.debian or Path(scratch)
        pages = tuple(fetch(language, folder) for language in options.languages)
        sides = debian(pages, options.languages, limit=options.limit, missing=options.missing)
    found, seconds = timed(aligner, sides[0].sentences, sides[1].sentences)
    sizes = " x ".join(f"{len(side.sentences):,}" for side in sides)
    print(
        f"Debian Reference {'-'.join(options.languages)}, {sizes} sentences, {options.missing:.0%}"
        f" of the paragraphs missing; {seconds:.1f} s CPU, {found.nodes:,} places",
        flush=True,
    )
    for most in (9.0, 0.8, 0.6, 0.4):
        scores = right_links(found.links, *sides, most)
        shown = "  all" if most == 9.0 else f"  cost up to {most}"
        print(
            f"{shown}: {scores['links']:,} links, precision {scores['precision']:.4f}, recall"
            f" {scores['recall']:.4f}"
        )
    if options.flores:
        lines = [
            (options.flores / f"{code}.txt")
            .read_text(encoding="utf-8")
            .splitlines()[: options.lines]
            for code in codes
        ]
        source, target, gold = joined_lines(*lines)
        found, seconds = timed(aligner, source, target)
        counts = LinkCounts.of(found.links, gold)
        shown = "; ".join(
            f"{kind} P {p:.4f} R {r:.4f} F1 {f:.4f}"
            for kind, (p, r, f) in {
                "strict": counts.strict_scores,
                "lax": counts.lax_scores,
            }.items()
        )
        print(
            f"FLORES {'-'.join(codes)}, {len(source):,} x {len(target):,} sentences: {shown};"
            f" {seconds:.1f} s CPU"
        )


if __name__ == "__main__":
    main()
