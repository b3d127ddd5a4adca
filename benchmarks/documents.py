"""Document pairing: translated pages in two of many languages, and ten thousand documents.

    python benchmarks/documents.py MODEL --passages FOLDER ... --languages de fr ja ru  # quality
    python benchmarks/documents.py MODEL --passages FOLDER ... --languages de fr --links  # units
    python benchmarks/documents.py --synthetic 10000 --sentences 30                       # time

Quality: FOLDER holds translated passages, ``LANGUAGE.tsv`` with the columns id, title, heading and
passage. The passages of one English title are a page. Of every two neighbors in the list of
languages, ``--pages`` pages are taken from either side in random order, 30 % of them without a
partner on the other side. Names say nothing. Recall is the share of true pairs that are found,
precision the share of found pairs that are true. Pages of ``--part development`` are other ones
than those of ``--part report``. Vectors are kept in ``--cache``.

Links: pages with the same units in both languages are aligned as ``interlingua documents`` does it,
and without regard to units. A link is right if both sides are of the same units. The share of right
links and the share of sentences in right links are printed; ``noise`` takes a tenth of the headings
of the target for paragraphs.

Time: the sentence vectors of one side are random, those of the other side the same with noise, and
30 % of the documents have no partner. Embedding is left out. The peak of the resident memory is
printed, of which the vectors are a mapped file.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from interlingua.alignment.document_files import StoredDocument
from interlingua.alignment.document_links import link_documents
from interlingua.alignment.document_pairing import pair_documents
from interlingua.alignment.document_store import DocumentSide, number_documents
from interlingua.alignment.sentence_alignment import AlignConfig, Link
from interlingua.config.languages import resolve_code
from interlingua.corpus.documents import Unit
from interlingua.encoder.protocol import Encode

MISSING = 0.3
"""Share of the pages of a side without a partner."""
KEPT_AT_ONCE = 500
"""Sentences that are embedded before all vectors are kept."""
Passages = dict[str, tuple[str, str, str]]
"""Title, heading and text by id."""


def read_passages(folder: Path, language: str) -> Passages:
    """Read the passages of a language."""
    found = {}
    with open(folder / f"{language}.tsv", encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            if len(cells) >= 4:
                found[cells[0]] = (cells[1], cells[2], cells[3])
    return found


def read_pages(
    folders: Sequence[Path], languages: Sequence[str], part: str
) -> dict[str, dict[str, list[Unit]]]:
    """Return the units of pages by language and page, for pages that all languages have."""
    found: dict[str, dict[str, list[Unit]]] = {language: {} for language in languages}
    for folder in folders:
        if not all((folder / f"{language}.tsv").exists() for language in ("en", *languages)):
            continue
        pages: dict[str, list[str]] = {}
        for number, (title, _, _) in read_passages(folder, "en").items():
            pages.setdefault(title, []).append(number)
        texts = {language: read_passages(folder, language) for language in languages}
        for title, ids in pages.items():
            is_report = zlib.crc32(title.encode()) % 2 == 0
            if is_report != (part == "report"):
                continue
            kept = {
                language: [number for number in ids if number in own]
                for language, own in texts.items()
            }
            if min(len(own) for own in kept.values()) < len(ids) / 2:
                continue
            for language, own in kept.items():
                page = page_units([texts[language][number] for number in own])
                found[language][f"{folder.name}/{title}"] = page
    return found


def page_units(passages: Sequence[tuple[str, str, str]]) -> list[Unit]:
    """Return a page as units: its title, and each passage below its heading."""
    units = [Unit(passages[0][0], "heading", 1)]
    for _, heading, text in passages:
        if heading:
            units.append(Unit(heading, "heading", 2))
        units.append(Unit(text, "paragraph"))
    return units


def without_copies(pages: dict[str, dict[str, list[Unit]]]) -> list[str]:
    """Return the pages with a text that no other page has in any language."""
    copies = set()
    for own in pages.values():
        seen: dict[str, str] = {}
        for name, units in own.items():
            text = " ".join(unit.text for unit in units[1:])
            if seen.setdefault(text, name) != name:
                copies |= {name, seen[text]}
    return sorted(set(next(iter(pages.values()))) - copies)


def make_side(language: str, names: Sequence[str], pages: dict[str, list[Unit]]) -> DocumentSide:
    """Number the sentences of some pages."""
    code = resolve_code(language.replace("_", "-"))
    documents = [
        StoredDocument(str(number), str(number), code, "", pages[name], 0)
        for number, name in enumerate(names)
    ]
    return number_documents(documents, code)


def side_vectors(
    encode: Encode, side: DocumentSide, known: dict[str, np.ndarray], save: Callable[[], None]
) -> np.ndarray:
    """Return the vectors of the distinct sentences of a side; ``known`` gets new ones."""
    texts = list(side.numbered.texts)
    new = [text for text in texts if text not in known]
    for start in range(0, len(new), KEPT_AT_ONCE):
        part = new[start : start + KEPT_AT_ONCE]
        for text, vector in zip(part, encode(part, language=side.language), strict=True):
            known[text] = vector.astype(np.float16)
        save()
    return np.stack([known[text] for text in texts]).astype(np.float32)


def measure_pair(
    sides: tuple[DocumentSide, DocumentSide],
    vectors: tuple[np.ndarray, np.ndarray],
    names: tuple[Sequence[str], Sequence[str]],
) -> tuple[float, float, int]:
    """Pair two sides by their texts; return recall, precision and the number of true pairs."""
    found = pair_documents(sides, vectors, match="texts")
    right = sum(names[0][one.source] == names[1][one.target] for one in found.pairs)
    true = len(set(names[0]) & set(names[1]))
    return right / true, right / max(1, len(found.pairs)), true


def quality(arguments: argparse.Namespace) -> None:
    """Print recall and precision of every two neighbors in the list of languages."""
    import interlingua

    encoder = interlingua.load(arguments.model)
    print("languages\trecall\tprecision\tpairs\tpages of a side", flush=True)
    known: dict[str, dict[str, np.ndarray]] = {}
    totals = []
    languages = arguments.languages
    for number, source in enumerate(languages):
        target = languages[(number + 1) % len(languages)]
        pages = read_pages(arguments.passages, (source, target), arguments.part)
        names = without_copies(pages)
        # The same order for all languages: most pages of a language are embedded once.
        names.sort(key=lambda name: zlib.crc32(f"order {name}".encode()))
        names = names[: int(arguments.pages * (1 + MISSING))]
        each = int(len(names) / (1 + MISSING))
        shared = each - int(each * MISSING)
        draw = random.Random(number)
        order = draw.sample(names, len(names))
        own = order[:each]
        others = [*order[:shared], *order[each : each + each - shared]]
        draw.shuffle(own)
        draw.shuffle(others)
        sides = make_side(source, own, pages[source]), make_side(target, others, pages[target])
        vectors = []
        for language, side in zip((source, target), sides, strict=True):
            if language not in known:
                known[language] = load_kept(arguments.cache, language)
            save = partial(keep, arguments.cache, language, known[language])
            vectors.append(side_vectors(encoder.encode, side, known[language], save))
        result = measure_pair(sides, (vectors[0], vectors[1]), (own, others))
        totals.append(result[:2])
        print(
            f"{source}-{target}\t{result[0]:.4f}\t{result[1]:.4f}\t{result[2]}\t{each}", flush=True
        )
    recall, precision = np.mean(totals, axis=0)
    print(f"mean\t{recall:.4f}\t{precision:.4f}")


def links(arguments: argparse.Namespace) -> None:
    """Print how many links keep to units, with and without regard to them."""
    import interlingua

    encoder = interlingua.load(arguments.model)
    source, target = arguments.languages[:2]
    pages = read_pages(arguments.passages, (source, target), arguments.part)
    names = [
        name
        for name in sorted(pages[source])
        if [unit.kind for unit in pages[source][name]]
        == [unit.kind for unit in pages[target][name]]
        and len(pages[source][name]) > 4
    ][: arguments.pages]
    draw = random.Random(0)
    noisy = {name: [with_noise(unit, draw) for unit in pages[target][name]] for name in names}
    print("pages\tunits\theadings\tright links\tsentences in right links", flush=True)
    for headings, own in (("all", pages[target]), ("noise", noisy)):
        sides = make_side(source, names, pages[source]), make_side(target, names, own)
        vectors = tuple(
            np.asarray(encoder.encode(list(side.numbered.texts), language=side.language))
            for side in sides
        )
        plain = tuple(
            side._replace(units=np.zeros_like(side.units), kinds=np.zeros_like(side.kinds))
            for side in sides
        )
        for units, aligned in (("kept", sides), ("ignored", plain)):
            counts = np.zeros(4)
            for number in range(len(names)):
                found = link_documents(
                    number,
                    (number, number),
                    (aligned[0], aligned[1]),
                    (vectors[0], vectors[1]),
                    encoder.encode,
                    AlignConfig(),
                )
                counts += unit_counts(found.links, sides, number)
            right, joining, kept, all_sentences = counts
            print(
                f"{len(names)}\t{units}\t{headings}\t{right / joining:.4f}"
                f"\t{kept / all_sentences:.4f}",
                flush=True,
            )


def kinds_of(units: Sequence[Unit]) -> list[str]:
    """Return the kinds of units."""
    return [unit.kind for unit in units]


def with_noise(unit: Unit, draw: random.Random) -> Unit:
    """Return a heading as a paragraph in a tenth of the cases."""
    if unit.kind == "heading" and draw.random() < 0.1:
        return Unit(unit.text)
    return unit


def unit_counts(
    found: Sequence[Link], sides: tuple[DocumentSide, DocumentSide], number: int
) -> np.ndarray:
    """Count right links, joining links, sentences in right links, and sentences."""
    units = [side.units[side.span(number)] for side in sides]
    right = joining = kept = 0
    for link in found:
        if not (link.source and link.target):
            continue
        joining += 1
        if {*units[0][list(link.source)]} == {*units[1][list(link.target)]}:
            right += 1
            kept += len(link.source) + len(link.target)
    return np.array([right, joining, kept, sum(map(len, units))])


def load_kept(cache: Path | None, language: str) -> dict[str, np.ndarray]:
    """Return vectors that were kept by text."""
    if cache is None or not (cache / f"{language}.npz").exists():
        return {}
    with np.load(cache / f"{language}.npz") as kept:
        return dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))


def keep(cache: Path | None, language: str, known: dict[str, np.ndarray]) -> None:
    """Keep vectors by text."""
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        vectors = np.stack(list(known.values()))
        np.savez(cache / f"{language}.npz", texts=np.array(list(known)), vectors=vectors)


def synthetic_side(
    count: int, sentences: int, kept: np.ndarray, prefix: str, seed: int
) -> DocumentSide:
    """Return documents with distinct sentences; ``kept`` numbers the documents by their content."""
    documents = []
    for place, content in enumerate(kept.tolist()):
        units = [Unit(f"{prefix} {content} {number}") for number in range(sentences)]
        documents.append(StoredDocument(str(place), str(place), prefix, "", units, 0))
    return number_documents(documents, "deu_Latn" if prefix == "a" else "fra_Latn")


def speed(arguments: argparse.Namespace) -> None:
    """Print time and peak memory of pairing documents with random sentence vectors."""
    count = arguments.synthetic
    sentences = arguments.sentences
    rng = np.random.default_rng(0)
    shared = count - int(count * MISSING)
    contents = np.arange(count)
    others = np.concatenate([contents[:shared], np.arange(count, 2 * count - shared)])
    rng.shuffle(others)
    sides = (
        synthetic_side(count, sentences, contents, "a", 0),
        synthetic_side(count, sentences, others, "b", 1),
    )
    width = arguments.width
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("x.npy", "y.npy")]
        for path, own in zip(paths, (contents, others), strict=True):
            rows = np.lib.format.open_memmap(path, "w+", np.float32, (len(own) * sentences, width))
            for place, content in enumerate(own.tolist()):
                # A document of its own content has equal vectors on both sides but for noise.
                base = np.random.default_rng(content)
                noisy = base.standard_normal((sentences, width), np.float32)
                noisy += rng.standard_normal(noisy.shape, np.float32)
                noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
                rows[place * sentences : (place + 1) * sentences] = noisy
            rows.flush()
        vectors = tuple(np.load(path, mmap_mode="r") for path in paths)
        before = resource.getrusage(resource.RUSAGE_SELF)
        started = time.perf_counter()
        found = pair_documents(sides, (vectors[0], vectors[1]), match="texts")
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_SELF)
    right = sum(one.source == others[one.target] for one in found.pairs)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{count:,} x {count:,} documents of {sentences} sentences, width {width}: {seconds:.1f} s"
        f" ({processor:.1f} s of the processor), peak memory {after.ru_maxrss / 2**20:.2f} GiB"
        f" ({before.ru_maxrss / 2**20:.2f} before), recall {right / shared:.4f}, precision"
        f" {right / max(1, len(found.pairs)):.4f}"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", default="mini")
    parser.add_argument("--passages", nargs="+", type=Path)
    parser.add_argument("--languages", nargs="+", default=["de", "fr", "es"])
    parser.add_argument("--part", choices=("development", "report"), default="report")
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--links", action="store_true")
    parser.add_argument("--synthetic", type=int)
    parser.add_argument("--sentences", type=int, default=30)
    parser.add_argument("--width", type=int, default=384)
    arguments = parser.parse_args()
    if arguments.synthetic:
        speed(arguments)
    elif arguments.links:
        links(arguments)
    else:
        quality(arguments)


if __name__ == "__main__":
    main()
