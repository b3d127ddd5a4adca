#!/usr/bin/env python3
"""Writes text files in one language each out of WikiMatrix's pairs or Mr. TyDi's passages.

    python tools/make_monolingual.py data/WikiMatrix --languages ru sw te --min-score 1.04 \
        --out data/monolingual/wikimatrix
    python tools/make_monolingual.py data/mrtydi --languages ru sw te th \
        --out data/monolingual/mrtydi

They are the text without translation of multilingual IR (Hu et al. 2022, Tables 5 and 10, Figure
4), one text a line. A text that occurs more than once is written once. The sentences are a draw by
the seed, every one as likely as any other, so that the order of the files says nothing; training
draws its ``max_sentences`` from them again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.dedup import ExactDeduplicator
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.errors import DataError, InterlinguaError
from interlingua.evaluation.data.retrieval import mr_tydi_sets
from interlingua.storage.files import atomic_write

CHUNK = 10_000


def wikimatrix_texts(folder: Path, language: str, min_score: float | None) -> Iterator[str]:
    """Read the language's side of every WikiMatrix file that has it.

    Args:
        folder: of the files.
        language: its code.
        min_score: least margin of a pair; None = all.

    Raises:
        DataError: a pair has no margin to compare.
    """
    wanted = resolve_language(language)
    for path in sorted(folder.glob("WikiMatrix.*.tsv*")):
        pair = path.name.split(".")[1].split("-")
        if len(pair) == 2 and wanted in map(resolve_language, pair):
            for row in read_pairs(str(path), source_language=pair[0], target_language=pair[1]):
                if min_score is not None:
                    if row.score is None:
                        raise DataError("a pair has no margin for --min-score", path=path)
                    if row.score < min_score:
                        continue
                yield row.source if row.source_language == wanted.code else row.target


def mr_tydi_texts(folder: Path, language: str) -> Iterator[str]:
    """Yield Mr. TyDi's passages, without their titles."""
    for name, read in mr_tydi_sets(folder, "test").items():
        if resolve_language(name) == resolve_language(language):
            for passage in read().passages():
                yield passage.text


def distinct(texts: Iterator[str], folder: Path) -> Iterator[str]:
    """Yield the texts in one line each, without repetitions and empty ones, in bounded memory."""
    seen = ExactDeduplicator(folder)
    while chunk := [" ".join(text.split()) for text in islice(texts, CHUNK)]:
        fresh = seen.first_seen(text_keys(chunk))
        yield from (text for text, is_new in zip(chunk, fresh, strict=True) if is_new and text)


def write_language(
    folder: Path,
    language: str,
    out: Path,
    *,
    sentences: int,
    seed: int,
    min_score: float | None = None,
) -> int:
    """Draw the texts of a language and write ``<language>.txt``.

    Returns:
        How many there are; without any, no file is written.
    """
    if any(folder.glob("mrtydi-*")):
        texts = mr_tydi_texts(folder, language)
    else:
        texts = wikimatrix_texts(folder, language, min_score)
    with tempfile.TemporaryDirectory() as work:
        drawn = reservoir(distinct(texts, Path(work)), sentences, seed=seed)
    if drawn:
        with atomic_write(out / f"{language}.txt") as file:
            file.writelines(f"{text}\n" for text in drawn)
    return len(drawn)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and write; one line on standard error and exit code 2 on failure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds WikiMatrix.*.tsv.gz or mrtydi-v1.1-*")
    parser.add_argument(
        "--languages", nargs="+", required=True, help="codes, as the files are to be called"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    parser.add_argument(
        "--sentences", type=int, default=200_000, help="texts a language, at most; default 200,000"
    )
    parser.add_argument(
        "--min-score",
        type=float,
        help="least margin of a WikiMatrix pair; its authors cut at 1.04; default: all pairs",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    options = parser.parse_args(arguments)
    try:
        if options.sentences < 1:
            raise DataError(f"--sentences is {options.sentences}, expected at least 1")
        if not any(options.folder.glob("WikiMatrix.*")) and not any(
            options.folder.glob("mrtydi-*")
        ):
            raise DataError(
                "neither WikiMatrix.*.tsv.gz nor mrtydi-v1.1-* is here", path=options.folder
            )
        if options.min_score is not None and any(options.folder.glob("mrtydi-*")):
            raise DataError("--min-score is for WikiMatrix; leave it out", path=options.folder)
        for language in options.languages:
            count = write_language(
                options.folder,
                language,
                options.out,
                sentences=options.sentences,
                seed=options.seed,
                min_score=options.min_score,
            )
            if count:
                print(f"{options.out / language}.txt: {count:,} texts")
            else:
                print(
                    f"warning: no text in {language} in {options.folder}; no file is written",
                    file=sys.stderr,
                )
    except InterlinguaError as error:
        print(f"make_monolingual: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
