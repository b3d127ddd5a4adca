"""Preparation of the catalogues into a corpus and held-out messages, by ``prepare``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from zlib import crc32

from interlingua.corpus.cleaning.clean import CleanConfig
from interlingua.corpus.formats.bitext import TextPair, write_pairs
from interlingua.corpus.formats.evaluation_sets import pair_files, read_pair_file
from interlingua.errors import DataError
from interlingua.getting_started.catalogues import (
    ENGLISH,
    SENTENCE_WORDS,
    CatalogueSource,
    is_sentence,
    read_catalogues,
)
from interlingua.getting_started.scores import LineKind
from interlingua.preparation.config import (
    PrepareConfig,
    SourceConfig,
    SplitConfig,
    VocabularyConfig,
)
from interlingua.runtime.progress import Progress

MIN_SENTENCES = 100
"""Minimum number of distinct sentences for a language to be included."""


def collect_bitexts(
    sources: Iterable[CatalogueSource], folder: Path, *, progress: Progress
) -> dict[str, dict[str, Path]]:
    """Read all catalogues and write one bitext per source and language.

    Args:
        sources: the sources to read.
        folder: gets ``<source>/<language>-eng_Latn.tsv``.
        progress: reports progress.

    Returns:
        for each source, language code -> file. Only languages with at least ``MIN_SENTENCES``
        distinct sentences over all sources are included. For each language, a source of names
        gives at most as many pairs as the language has distinct sentences.

    Raises:
        DataError: no language has enough.
    """
    everything = list(sources)
    found: dict[str, dict[str, list[TextPair]]] = {source.name: {} for source in everything}
    # Count each English sentence once per language: the same message is in many packages.
    sentences: dict[str, set[str]] = {}
    progress.start(len(everything), "sources", "reading")
    for source in everything:
        progress.note(source.name)
        for pair in read_catalogues(source):
            found[source.name].setdefault(pair.target_language, []).append(pair)
            if is_sentence(pair.source) and pair.source != pair.target and not source.only_names:
                sentences.setdefault(pair.target_language, set()).add(pair.source)
        progress.advance()
    kept = {
        language: len(messages)
        for language, messages in sentences.items()
        if len(messages) >= MIN_SENTENCES
    }
    if not kept:
        names = ", ".join(source.name for source in everything)
        raise DataError(
            f"no language has {MIN_SENTENCES} translated sentences in {names}; add more catalogues"
            " with --catalogues DIR"
        )
    for source in everything:
        of_source = found[source.name]
        chosen = {language: of_source[language] for language in kept if language in of_source}
        # Lists of names, such as those of countries, may be longer than all sentences together.
        if source.only_names:
            chosen = {
                language: _sample(pairs, kept[language]) for language, pairs in chosen.items()
            }
        found[source.name] = chosen
    return {name: _write(chosen, folder / _folder_name(name)) for name, chosen in found.items()}


def quickstart_corpus_config(
    bitexts: Mapping[str, Mapping[str, Path]],
    sources: Sequence[CatalogueSource],
    output: Path,
    *,
    vocabulary_size: int,
    max_tokens: int,
) -> PrepareConfig:
    """Return the configuration of ``interlingua prepare``.

    Placeholders are removed from the messages. Held-out sentences and names are chosen by
    their English text.
    """
    by_name = {source.name: source for source in sources}
    configured = []
    for name, files in bitexts.items():
        if not files:
            continue
        source = by_name[name]
        configured.append(
            SourceConfig(
                name=f"{name} {source.version or ''}".strip(),
                paths=tuple(files.values()),
                format="tsv",
                license=source.license,
                heldout=not source.only_names,
            )
        )
    return PrepareConfig(
        output=output,
        sources=tuple(configured),
        clean=CleanConfig(markup="strip", max_characters=400),
        heldout=SplitConfig(pairs=250, short_pairs=150, min_words=SENTENCE_WORDS, max_share=0.1),
        validation=SplitConfig(pairs=10, min_words=SENTENCE_WORDS, max_share=0.02),
        vocabulary=VocabularyConfig(
            size=vocabulary_size, temperature=2.0, sample_sentences=200_000
        ),
        max_tokens=max_tokens,
        processes=2,
    )


def split_kinds(heldout: Path, output: Path) -> dict[LineKind, Path]:
    """Split the held-out pairs into sentences and names.

    Args:
        heldout: ``<lang>-eng.tsv`` files.
        output: gets ``sentences/`` and ``names/`` of the same layout; files of a single pair are
            left out.

    Returns:
        the folder of each kind that has pairs.
    """
    folders: dict[LineKind, Path] = {}
    for file in pair_files(heldout):
        parts: dict[LineKind, list[str]] = {"sentences": [], "names": []}
        for foreign, english in zip(*read_pair_file(file), strict=True):
            kind: LineKind = "sentences" if is_sentence(english) else "names"
            parts[kind].append(f"{foreign}\t{english}\n")
        for kind, lines in parts.items():
            # With one candidate every query finds its translation.
            if len(lines) > 1:
                folders[kind] = output / kind
                folders[kind].mkdir(parents=True, exist_ok=True)
                (folders[kind] / f"{file.name}.tsv").write_text("".join(lines), encoding="utf-8")
    return folders


def _sample(pairs: Sequence[TextPair], count: int) -> list[TextPair]:
    """Return at most ``count`` pairs, of the same messages in every language."""
    # Sorting by a digest shuffles the pairs in the same way for all languages, without a seed.
    return sorted(pairs, key=lambda pair: (crc32(pair.source.encode()), pair))[:count]


def _write(by_language: Mapping[str, Sequence[TextPair]], folder: Path) -> dict[str, Path]:
    """Write the pairs of each language, the foreign text first."""
    files = {}
    for language, pairs in sorted(by_language.items()):
        files[language] = folder / f"{language}-{ENGLISH}.tsv"
        write_pairs((pair.swapped() for pair in pairs), files[language], format="tsv")
    return files


def _folder_name(source: str) -> str:
    """Return a source's name, which may be a path, without characters that folder names exclude."""
    return "".join(character if character.isalnum() else "_" for character in source).strip("_")
