"""Sentence alignment: the Debian Reference in two languages, and FLORES with joined sentences.

    python benchmarks/align.py MODEL --languages fr en      # gets the packages by apt-get download
    python benchmarks/align.py MODEL --debian FOLDER --flores flores200_devtest --languages de en
    python benchmarks/align.py MODEL --passages FOLDER --pairs de-en fr-en ja-en  # before and after

The Debian Reference is translated paragraph by paragraph, so it is known which paragraph every
sentence belongs to: a link is right if both sides are of the same paragraphs. ``--missing`` leaves
out a share of the paragraphs, half of them in either language. Of FLORES, in which lines
are translations of each other, runs of lines are joined at random on either side, which gives gold
links.

``--passages`` makes documents from translated passages, ``LANGUAGE.tsv`` with the columns id,
title, heading and passage: the sentences of passages that have equally many in both languages.
Sentences are joined and split on one side. In a document of kind ``noise`` characters are changed
as by a scanner. In one of kind ``gaps`` passages are missing on one side or change places with the
next, and titles are on one side only. Each document is aligned in two ways, in turns. "Before"
embeds every block of sentences, with the costs of vecalign; "after" is what ``interlingua align``
does. The ratio of the processor times is printed last.
"""

from __future__ import annotations

import argparse
import html
import random
import re
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from interlingua.alignment.align import Aligner, SentenceBlocks
from interlingua.alignment.sentence_alignment import AlignConfig, Link, LinkCounts, align_blocks
from interlingua.corpus.segments.sentence_splitting import split_paragraph

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
"""Approximate end of a sentence: both languages are cut by the same rule, and often at different
places."""


class Document(NamedTuple):
    """Sentences, and the paragraph that each is of."""

    sentences: list[str]
    paragraphs: list[int]


def fetch(language: str, folder: Path) -> Path:
    """Unpack a package of the Debian Reference, and return the folder of its pages.

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
    """Return the text of all paragraphs, chapter by chapter."""
    found = []
    for page in sorted(pages.glob(f"ch*.{language}.html")):
        for match in PARAGRAPH.findall(page.read_text(encoding="utf-8")):
            found.append(" ".join(html.unescape(TAG.sub("", match)).split()))
    return found


def document(texts: Sequence[str], left_out: set[int]) -> Document:
    """Build a document from the sentences of the paragraphs that are not left out."""
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
    """Return the document in both languages."""
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
    """Count links that join equal paragraphs, and sentences linked to their partner.

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
    """Join some translated lines on one side, and return both sides with the right links."""
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


KINDS = ("plain", "noise", "gaps")
MISREAD = dict(zip("eoalimrnctufsghbd", "c0o1lnnrecvv5qbhcl", strict=False))
"""Characters, and those for which a scanner takes them."""


class Passage(NamedTuple):
    """A translated passage: equally many sentences in both languages, and its title."""

    source: list[str]
    target: list[str]
    title: str


def translated_passages(folder: Path, languages: Sequence[str]) -> list[Passage]:
    """Read the passages that have equally many sentences in both languages, in order."""
    tables = []
    for language in languages:
        lines = (folder / f"{language}.tsv").read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines]
        tables.append({row[0]: row for row in rows if len(row) == 4})
    found = []
    for number, row in tables[0].items():
        if number in tables[1]:
            sides = [
                split_paragraph(table[number][3], FLORES_CODES.get(language, language))
                for table, language in zip(tables, languages, strict=True)
            ]
            if len(sides[0]) == len(sides[1]):
                found.append(Passage(*sides, row[2] or row[1]))
    return found


def scanned(text: str, draw: random.Random, share: float = 0.04) -> str:
    """Change characters like a scanner: look-alikes, missing ones and extra spaces."""
    made = []
    for letter in text:
        change = draw.random()
        if change < share / 2:
            made.append(MISREAD.get(letter, letter))
        elif change < share:
            made.append(draw.choice(("", letter + " ")))
        else:
            made.append(letter)
    return "".join(made).strip() or text


def cut_in_two(sentence: str) -> list[str]:
    """Split a sentence near its middle, at a comma or a space if there is one."""
    middle = len(sentence) // 2
    for marks in (",;:，、；：،", " "):
        cuts = [
            at + 1
            for at, letter in enumerate(sentence)
            if letter in marks and abs(at - middle) < len(sentence) / 4
        ]
        if cuts:
            middle = min(cuts, key=lambda at: abs(at - len(sentence) // 2))
            break
    parts = [sentence[:middle].strip(), sentence[middle:].strip()]
    return [part for part in parts if part]


def changed_document(
    passages: Sequence[Passage], kind: str, seed: int
) -> tuple[list[str], list[str], list[Link]]:
    """Make both sides of a document of some kind, and the links that are right.

    The sentences of a link share a number, which is how the links are found after passages moved.
    """
    draw = random.Random(seed)
    has_gaps = kind == "gaps"
    sides: list[list[list[tuple[str, int]]]] = [[], []]
    number = 0
    for passage in passages:
        parts: list[list[tuple[str, int]]] = [[], []]
        if has_gaps and draw.random() < 0.15:
            parts[draw.randrange(2)].append((passage.title, -1))
        at = 0
        while at < len(passage.source):
            # One to one, two or three joined on one side, or one cut in two on one side.
            shape = draw.choices(("1", "2", "3", "cut"), (82, 9, 2, 7))[0]
            size = int(shape) if shape.isdigit() else 1
            texts = [side[at : at + size] for side in passage[:2]]
            which = draw.randrange(2)
            if shape == "cut":
                texts[which] = cut_in_two(texts[which][0])
            else:
                texts[which] = [" ".join(texts[which])]
            for side in (0, 1):
                parts[side] += [(text, number) for text in texts[side]]
            number += 1
            at += size
        lost = draw.random()
        for side in (0, 1):
            is_kept = not has_gaps or not 0.06 * side <= lost < 0.06 * (side + 1)
            sides[side].append(parts[side] if is_kept else [])
    for at in range(0, len(passages) - 1, 2):
        if has_gaps and draw.random() < 0.08:
            sides[1][at], sides[1][at + 1] = sides[1][at + 1], sides[1][at]
    lines = [[pair for part in side for pair in part] for side in sides]
    links = gold_links(lines)
    texts = [[text for text, _ in side] for side in lines]
    if kind == "noise":
        texts = [[scanned(text, draw) for text in side] for side in texts]
    return texts[0], texts[1], links


def gold_links(lines: Sequence[Sequence[tuple[str, int]]]) -> list[Link]:
    """Link the sentences that share a number; the others are left out."""
    places: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    links = []
    for side in (0, 1):
        for at, (_, number) in enumerate(lines[side]):
            if number >= 0:
                places[number][side].append(at)
            else:
                links.append(Link((at,) * (1 - side), (at,) * side, 0.0))
    for found in places.values():
        if all(found):
            links.append(Link(tuple(found[0]), tuple(found[1]), 0.0))
        else:
            links += [Link((at,), (), 0.0) for at in found[0]]
            links += [Link((), (at,), 0.0) for at in found[1]]
    return links


def align_every_block(aligner: Aligner, source: Sequence[str], target: Sequence[str]):
    """Embed all blocks of sentences, and align by the costs of the released code."""
    sides = []
    for sentences, language in zip((source, target), aligner.languages, strict=True):
        side = SentenceBlocks(sentences, partial(aligner.encode, language=language))
        for size in range(1, aligner.config.max_sentences):
            side.embed(size, side.texts(size, np.ones(len(sentences), bool)))
        sides.append(side)
    paper = replace(aligner.config, border=0.0, skip_quantile=0.2)
    return align_blocks(sides[0].vectors, sides[1].vectors, paper)


def passage_documents(
    folder: Path, languages: Sequence[str], sentences: int
) -> Iterator[tuple[str, tuple[list[str], list[str], list[Link]]]]:
    """Make a document of each kind with an approximate length, each of other passages."""
    passages = iter(translated_passages(folder, languages))
    for seed, kind in enumerate(KINDS):
        kept: list[Passage] = []
        while sum(len(passage.source) for passage in kept) < sentences:
            passage = next(passages, None)
            if passage is None:
                break
            kept.append(passage)
        if kept:
            yield kind, changed_document(kept, kind, seed)


def compare_on_passages(encode, options: argparse.Namespace) -> None:
    """Print F1 and processor time of every document before and after, and the ratio."""
    config = AlignConfig(max_sentences=options.max_sentences, skip_quantile=options.skip_quantile)
    seconds = np.zeros(2)
    every: dict[str, list[LinkCounts]] = {kind: [LinkCounts()] * 2 for kind in KINDS}
    print(f"{'document':34} {'sentences':>12}  strict F1 before, after    lax F1    seconds")
    for folder in options.passages:
        for pair in options.pairs:
            languages = pair.split("-")
            if not all((folder / f"{language}.tsv").exists() for language in languages):
                continue
            codes = [FLORES_CODES.get(language, language) for language in languages]
            aligner = Aligner(encode, config, source_language=codes[0], target_language=codes[1])
            whole = [LinkCounts()] * 2
            spent = np.zeros(2)
            size = 0
            for kind, (source, target, gold) in passage_documents(
                folder, languages, options.sentences
            ):
                # In turns, so that other work on the machine slows both.
                for turn, way in enumerate((partial(align_every_block, aligner), aligner.align)):
                    start = time.process_time()
                    found = way(source, target)
                    spent[turn] += time.process_time() - start
                    counts = LinkCounts.of(found.links, gold)
                    whole[turn] += counts
                    every[kind] = [
                        known + counts if at == turn else known
                        for at, known in enumerate(every[kind])
                    ]
                size += len(source) + len(target)
            print(_comparison(f"{folder.name} {pair}", size, whole, spent), flush=True)
            seconds += spent
    for kind, whole in every.items():
        print(_comparison(f"all of kind {kind}", 0, whole, None))
    total = [sum((every[kind][turn] for kind in KINDS), LinkCounts()) for turn in (0, 1)]
    print(_comparison("all", 0, total, seconds))
    print(f"{seconds[0] / seconds[1]:.2f} times as fast; wanted: at least 2.5")


def _comparison(name: str, size: int, counts: Sequence[LinkCounts], seconds) -> str:
    """Return a line of F1 and seconds before and after."""
    strict = "  ".join(f"{one.strict_scores.f1:.4f}" for one in counts)
    lax = "  ".join(f"{one.lax_scores.f1:.4f}" for one in counts)
    times = ""
    if seconds is not None:
        times = f"{seconds[0]:6.1f} {seconds[1]:6.1f}  {seconds[0] / seconds[1]:.2f} x"
    return f"{name:34} {size or '':>12}  {strict}    {lax}  {times}"


def timed(aligner: Aligner, source: Sequence[str], target: Sequence[str]):
    """Return the alignment and its processor seconds."""
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
    parser.add_argument(
        "--passages", type=Path, nargs="+", help="folders with LANGUAGE.tsv of translated passages"
    )
    parser.add_argument("--pairs", nargs="+", default=["de-en"], help="languages of --passages")
    parser.add_argument(
        "--sentences", type=int, default=200, help="sentences of a document of --passages"
    )
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--prompt")
    options = parser.parse_args()

    import torch

    from interlingua.encoder.backends.load import encode_function

    torch.set_num_threads(1)
    encode = partial(
        encode_function(options.model, dtype=options.dtype),
        prompt=options.prompt,
        normalize_embeddings=True,
    )
    if options.passages:
        compare_on_passages(encode, options)
        return
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
