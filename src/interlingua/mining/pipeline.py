"""From two files of texts to scored pairs, in a work folder or in memory.

The steps of ``mine_files`` are: read both sides and number their texts (``texts``), embed them
(``vectors``), find the k nearest of every text on the other side, a tile of the whole product at a
time (``retrieval.topk.tiles``), and choose pairs by their margins (``candidates``). If documents
are matched, the last two are done within each pair of them (``documents``).

With a work folder, a killed run resumes from its steps. Shards of one job share the embedding and
the search; a last run without a shard joins their results. Held-out texts are mixed into the sides
by steps of their own (``mixed-x``), which reuse the vectors of the other texts. So
calibration and mining in one work folder embed each text once. Without a work folder no file is
written.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.config.languages import resolve_language
from interlingua.corpus.documents.kinds import is_document
from interlingua.corpus.documents.reading import read_document_as_sentences
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.sentence_table import (
    ColumnChoice,
    is_table,
    read_column,
    refuse_column,
)
from interlingua.corpus.segments.sentence_splitting import (
    paragraphs,
    split_paragraph,
    split_text,
)
from interlingua.encoder.protocol import Encode
from interlingua.encoder.texts import checked_texts
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.mining.candidates import (
    FOUND,
    CandidatePairs,
    Refuses,
    without_partners,
)
from interlingua.mining.documents import (
    DocumentMatch,
    check_matches,
    collect_document_pairs,
    reader,
)
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.texts import (
    Line,
    NumberedTexts,
    TextLayout,
    build_side,
    mapped,
    number_texts,
    read_text_lines,
)
from interlingua.mining.vectors import (
    PORTION,
    VECTOR_FILES,
    VectorsOfTexts,
    check_identity,
    check_known,
    count_zeros,
    drop_damaged,
    embed_side,
    encoded,
    finished,
    load_vectors,
    no_model,
    open_vectors,
    side_vectors,
)
from interlingua.retrieval.topk.approximate import find_approximately
from interlingua.retrieval.topk.exact import Neighbors
from interlingua.retrieval.topk.speed import search_speed
from interlingua.retrieval.topk.tiles import (
    JOURNAL,
    LISTS,
    TileLists,
    TilePlan,
    block_sizes,
    join_shards,
    search_tiles,
    tiles_for,
)
from interlingua.runtime.progress import SILENT, Expected, Progress
from interlingua.runtime.workers import Workers
from interlingua.storage.files import PathLike, atomic_write, remove_entries, sha256_file
from interlingua.storage.remote import name_of
from interlingua.storage.workspace import Workspace

CHOICE_SECONDS = 5e-6
PAIR_SECONDS = 2e-5
DOCUMENT_SECONDS = 3e-5
"""Seconds to choose a candidate, to check and write a pair, and to compare a text within documents,
on one core of a server. The model takes much more time."""
NEIGHBOR_FILES = rf"{JOURNAL}|{LISTS}"
"""Names of the files of a folder of neighbors."""
LEAST_TEXTS = 10
"""Minimum number of texts of a side for each of the k neighbors; with fewer, a warning says that
margins mean nothing."""
SHOWN_LEFT_OUT = 20
"""Maximum number of left-out files of folders that a report names."""
_MIXED = "mixed-"
"""Start of the names of steps with held-out texts."""
_Embedded = tuple[Mapping[str, NumberedTexts], Mapping[str, Float32[ndarray, "n d"]]]
"""The texts and the vectors of both sides, ``x`` and ``y``."""
FEW = 16
"""Texts of a side that are embedded to try the search."""
RefusesTexts = Callable[[Sequence[str], Sequence[str]], Bool[ndarray, " n"]]
"""Marks pairs, by their sources and their targets."""


class TextFile(NamedTuple):
    """One side as the user provides it.

    Attributes:
        path: the file, or a common name of several.
        language: a code such as ``zho_Hans``.
        layout: see ``mining.texts.read_text_lines``.
        encode: gives the vectors of texts; None if all are known.
        vectors: files of known vectors, one per line.
        extra: the lines of a side in memory.
        held_out: lines that are mixed in behind all others.
        parts: the files to read one after the other, if there are several or if they are copies.
        bad: how to handle unreadable lines; by default the first one is an error.
        column: of a table; see ``with_lines``.
        split: the files are text or documents to be split into sentences; see ``with_lines``.
        in_memory: there is no file, and ``extra`` is all of the side.
        labels: of ``parts``, which name the lines of several files: ``news.txt:12``.
        left_out: files of a folder that are not read, with the reasons.
    """

    path: PathLike
    language: str
    layout: TextLayout = "lines"
    encode: Encode | None = None
    vectors: Sequence[PathLike] = ()
    extra: Sequence[Line] = ()
    held_out: Sequence[Line] = ()
    parts: Sequence[PathLike] = ()
    bad: BadLines | None = None
    column: ColumnChoice = None
    split: bool = False
    in_memory: bool = False
    labels: Sequence[str] = ()
    left_out: Sequence[str] = ()

    @property
    def files(self) -> Sequence[PathLike]:
        """Files to be read."""
        # A side in memory has a path only for its name.
        if self.in_memory or self.parts:
            return self.parts
        return (self.path,)


def text_side(
    texts: Sequence[str], name: str, language: str | None, encode: Encode | None = None
) -> TextFile:
    """Return texts in memory as a side to mine; each is stripped, as the lines of a file are.

    Args:
        texts: sentences.
        name: of the side in errors and reports.
        language: any code; without one no check of script or language rejects a pair.
        encode: computes the vectors of texts.

    Raises:
        ConfigError: it is a single text, a table or a dictionary.
        DataError: an element is not a text.
    """
    lines = [
        Line(text.strip(), str(number)) for number, text in enumerate(checked_texts(texts, name), 1)
    ]
    code = ""
    if language:
        code = resolve_language(language).code
    return TextFile(path=name, language=code, encode=encode, extra=lines, in_memory=True)


def with_lines(file: TextFile, folder: Path | None) -> TextFile:
    """Return the side with a text file in place of each table, and of each text to be split.

    Sentence i of a table (CSV, XLSX) is row i of its column, unless the texts are
    split into sentences.

    Args:
        file: the side.
        folder: the work folder; None for a side in memory.

    Raises:
        ConfigError: a column is named for a file that is not a table, or the layout of a table or
            of a text to be split is not ``lines``.
        DataError: a table can't be read, or its column is not known.
    """
    for part in file.files:
        refuse_column(file.column, part)
    tables = [part for part in file.files if is_table(part)]
    if not tables and not file.split:
        return file
    assert folder is not None
    if file.split and file.layout != "lines":
        raise ConfigError(
            f"{file.path}: --split requires plain text, but the layout is {file.layout}; remove"
            " --split, or pass --layout lines"
        )
    if file.layout != "lines":
        raise ConfigError(
            f"{tables[0]}: a table requires the layout lines, found {file.layout}; remove --layout"
        )
    return file._replace(parts=[_as_lines(part, file, folder) for part in file.files])


def _as_lines(part: PathLike, file: TextFile, folder: Path) -> PathLike:
    """Return a file of lines: a table's column or the sentences of a text, else the file itself."""
    if not is_table(part) and not file.split:
        return part
    # The digest distinguishes two columns of one table, and two tables of one name.
    identity = f"{part}\0{file.column}\0{file.language}"
    if file.split:
        identity += "\0split"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    path = folder / "tables" / f"{digest}-{name_of(part)}.txt"
    with atomic_write(path) as lines:
        lines.writelines(f"{text}\n" for text in _sentences(part, file))
    return path


def _sentences(part: PathLike, file: TextFile) -> Iterator[str]:
    """Yield the texts of a table's column, or those of any file split into sentences."""
    if file.split and is_document(part):
        yield from read_document_as_sentences(part, file.language)
        return
    if is_table(part):
        cells = read_column(part, column=file.column, language=file.language, bad=file.bad)
        for text in cells:
            if file.split:
                yield from split_text(text.splitlines(), file.language)
            else:
                yield text
        return
    bad = file.bad or BadLines()
    # The text is read twice, so that memory stays bounded: its line width is known only at its end.
    first = read_text_lines([part], "lines", bad=bad)
    width = max((len(line.text) for line in first), default=0)
    texts = (line.text for line in read_text_lines([part], "lines", bad=bad))
    for paragraph in paragraphs(texts, width):
        yield from split_paragraph(paragraph, file.language)


class Mined(NamedTuple):
    """Results of mining.

    Attributes:
        x: the texts of the source.
        y: those of the target.
        pairs: ``FOUND`` records, mapped, by descending score.
        notes: remarks for the user.
        retrieve_without: retrieves again while the texts of some pairs are hidden from each other,
            see ``_retrieve_without``; None if documents are matched.
    """

    x: NumberedTexts
    y: NumberedTexts
    pairs: NDArray[np.void]
    notes: list[str]
    retrieve_without: Callable[[NDArray[np.void]], NDArray[np.void]] | None = None


def mine_files(
    source: TextFile,
    target: TextFile,
    config: PairSearch,
    work: Workspace | None = None,
    *,
    model: str,
    shard: tuple[int, int] | None = None,
    workers: Workers | None = None,
    refuses: RefusesTexts | None = None,
    progress: Progress = SILENT,
) -> Mined | None:
    """Find and score pairs; an interrupted run resumes all expensive steps.

    Args:
        source: the one side.
        target: the other.
        config: how pairs are found.
        work: the work folder; None = both sides are in memory, and no file is written.
        model: the identity of the model and of its input format; vectors of another one are
            refused.
        shard: do only one of several parts, ``(2, 8)``.
        workers: who embeds and searches; this process by default.
        refuses: marks pairs to be rejected; in the retrieval ``max``, other pairs may use their
            texts.
        progress: receives the progress of the work.

    Returns:
        The pairs; None if a shard was requested, or vectors of other shards are not there yet.

    Raises:
        ConfigError: the folder holds another run.
        DataError: a file can't be used, or was damaged and can't be made again.
    """
    config.check_search()
    _check_parts(config, shard, workers)
    files = {"x": source, "y": target}
    if work is None:
        embedded = _embed_in_memory(files, config, workers, progress)
    else:
        found = _embed_in(work, files, config, model, shard, workers, progress)
        if found is None:
            return None
        embedded = found
        if source.held_out or target.held_out:
            embedded = _mix_in(work, files, config, model, found, workers, progress)
    sides, vectors = embedded
    one_width(files.values(), list(vectors.values()))
    # Search and choose.
    by_number = _by_number(sides, refuses)
    again = None
    match = config.document_match
    if match is not None:
        pairs, note = _search_documents(sides, vectors, match, config, by_number, progress)
    else:
        folder = None
        if work is not None:
            folder = work.path
        name = f"neighbors-{_prefix(files)}k{config.k}"
        lists, note = _search(vectors, folder, name, config, shard, workers, progress)
        if shard is not None:
            return None
        pairs = _retrieve(lists, folder, config, by_number, progress)
        again = functools.partial(_retrieve_without, lists, config, by_number)
    notes = [_note(file, sides[side]) for side, file in files.items()]
    notes += left_out_lines([*source.left_out, *target.left_out])
    notes += chain.from_iterable(_warnings(file, vectors[side]) for side, file in files.items())
    if note:
        notes.append(note)
    notes += _few_texts(sides, config)
    return Mined(sides["x"], sides["y"], pairs, notes, again)


def _embed_in_memory(
    files: Mapping[str, TextFile], config: PairSearch, workers: Workers | None, progress: Progress
) -> _Embedded:
    """Embed the numbered texts of two sides in memory."""
    sides = {}
    vectors = {}
    for name, file in files.items():
        sides[name] = number_texts(
            chain(file.extra, file.held_out),
            path=file.path,
            equal=config.equal,
            keep_blank=config.is_like_laser,
            memory=config.memory_bytes,
        )
    for name, file in files.items():
        vectors[name] = side_vectors(
            sides[name],
            file.encode or no_model,
            path=file.path,
            workers=workers,
            label=f"embedding {name_of(file.path)}",
            progress=progress,
        )
    return sides, vectors


def _embed_in(
    work: Workspace,
    files: Mapping[str, TextFile],
    config: PairSearch,
    model: str,
    shard: tuple[int, int] | None,
    workers: Workers | None,
    progress: Progress,
) -> _Embedded | None:
    """Embed the numbered texts of two sides, without held-out ones, in a work folder.

    Returns:
        The texts and the vectors; None if other shards have not embedded their portions yet.
    """
    places = {name: vectors_of(work.path, name) for name in files}
    sides: dict[str, NumberedTexts] = {}
    identities: dict[str, dict[str, Any]] = {}
    # Read. All shards share these files: the first one writes them, the others find them.
    with work.alone():
        for name, file in files.items():
            sides[name] = prepare_side(file, config, work, name, progress)
            identities[name] = vectors_identity(file, model, work.digest(name))
        for name, side in sides.items():
            check_identity(places[name], identities[name])
            drop_damaged(places[name], len(side), shard or (1, 1))
    match = config.document_match
    if match is not None:
        check_matches(sides["x"], sides["y"], match)
    progress.expect(lambda: _outlook(files, sides, config, work.path, workers))
    # Embed. A shard makes its own portions; the search needs those of all.
    missing = 0
    for name, file in files.items():
        identity = identities[name]
        missing += embed_file(
            file, sides[name], config, places[name], identity, shard or (1, 1), workers, progress
        )
    if missing and shard is not None:
        return None
    return sides, {name: load_vectors(place) for name, place in places.items()}


def _mix_in(
    work: Workspace,
    files: Mapping[str, TextFile],
    config: PairSearch,
    model: str,
    plain: _Embedded,
    workers: Workers | None,
    progress: Progress,
) -> _Embedded:
    """Embed the numbered texts of both sides with their held-out texts mixed in.

    The texts of a side keep the numbers that they have without held-out texts; the held-out texts
    follow them.

    Args:
        work: the work folder.
        files: with held-out lines.
        config: how pairs are found.
        model: see ``mine_files``.
        plain: the sides without held-out texts, and their vectors.
        workers: the workers that embed.
        progress: receives the progress of the work.
    """
    sides = {}
    vectors = {}
    for side, file in files.items():
        name = f"{_MIXED}{side}"
        folder = vectors_of(work.path, name)
        sides[side] = prepare_side(file, config, work, name, progress, held_out=file.held_out)
        identity = vectors_identity(file, model, work.digest(name))
        check_identity(folder, identity)
        drop_damaged(folder, len(sides[side]))
        embed_side(
            sides[side],
            file.encode or no_model,
            folder,
            identity=identity,
            known=VectorsOfTexts(plain[1][side]),
            path=file.path,
            workers=workers,
            label=f"embedding held-out texts, {name_of(file.path)}",
            progress=progress,
        )
        vectors[side] = load_vectors(folder)
    return sides, vectors


def _prefix(files: Mapping[str, TextFile]) -> str:
    """Return the start of the names of parts with held-out texts, if there are any."""
    if any(file.held_out for file in files.values()):
        return _MIXED
    return ""


def _few_texts(sides: Mapping[str, NumberedTexts], config: PairSearch) -> list[str]:
    """Return a warning if a side has too few texts for a margin, otherwise no warning."""
    # Within documents the means are over the background too.
    if config.margin == "absolute" or config.documents:
        return []
    fewest = min(map(len, sides.values()))
    least = LEAST_TEXTS * config.k
    if fewest >= least:
        return []
    return [
        f"warning: a margin compares a text with its neighbors and is meaningless for {fewest:,}"
        f" texts per side with k = {config.k}; provide at least {least:,} texts per side, or pass"
        " --margin absolute"
    ]


def _search_documents(
    sides: Mapping[str, NumberedTexts],
    vectors: Mapping[str, Float32[ndarray, "n d"]],
    match: DocumentMatch,
    config: PairSearch,
    refuses: Refuses | None,
    progress: Progress,
) -> tuple[NDArray[np.void], str]:
    """Return the pairs within matched documents, and a note."""
    return collect_document_pairs(
        sides["x"],
        sides["y"],
        vectors["x"],
        vectors["y"],
        match,
        k=config.k,
        margin=config.margin,
        retrieval=config.retrieval,
        background=config.background,
        device=config.search_device,
        refuses=refuses,
        progress=progress,
    )


def _check_parts(
    config: PairSearch, shard: tuple[int, int] | None, workers: Workers | None
) -> None:
    """Refuse shards of work that can't be divided.

    Raises:
        ConfigError: two of the options exclude each other.
    """
    if shard is not None and config.documents:
        raise ConfigError(
            "--shard and --documents cannot be combined; split the file of matches into several"
            " files instead"
        )
    if config.approximation is not None and (shard or workers):
        raise ConfigError("--approximate cannot be combined with --shard or --ray; remove one")
    if shard is not None and workers is not None:
        raise ConfigError("--shard and --ray cannot be combined; remove one")


def _by_number(sides: Mapping[str, NumberedTexts], refuses: RefusesTexts | None) -> Refuses | None:
    """Return the same test for pairs by the numbers of their texts."""
    if refuses is None:
        return None
    x, y = sides["x"].texts, sides["y"].texts
    return lambda xs, ys: refuses([x[n] for n in xs.tolist()], [y[n] for n in ys.tolist()])


def _outlook(
    files: Mapping[str, TextFile],
    sides: Mapping[str, NumberedTexts],
    config: PairSearch,
    work: Path,
    workers: Workers | None,
) -> dict[str, Expected]:
    """Estimate the cost of the remaining steps; a small search is tried on vectors of few texts."""
    n, m = len(sides["x"]), len(sides["y"])
    found = {
        f"embedding {name_of(file.path)}": Expected(sum(map(len, sides[side].texts)), None)
        for side, file in files.items()
    }
    if config.documents:
        found["documents"] = Expected(n + m, DOCUMENT_SECONDS)
    elif config.approximation is None:
        few = [
            some_vectors(file, sides[side], vectors_of(work, side), workers)
            for side, file in files.items()
        ]
        one_width(files.values(), few)
        rows, _ = block_sizes(
            n, m, few[0].shape[1], config.k, config.memory_bytes, tiles_for(workers)
        )
        speed = search_speed(few[0], few[1], config.k, (n, m), config.search_device)
        seconds = speed.seconds(n, m, config.k, rows)
        found["nearest neighbors"] = Expected(seconds / (workers or Workers()).slots)
    if not config.documents:
        found["choosing pairs"] = Expected(n + m, CHOICE_SECONDS)
    return found | {"writing pairs": Expected(min(n, m), PAIR_SECONDS)}


def some_vectors(
    file: TextFile, side: NumberedTexts, folder: Path, workers: Workers | None
) -> Float32[ndarray, "n d"]:
    """Return vectors of a few texts of a side, from existing vectors or by the model."""
    if file.vectors:
        first = side.first_lines(0, min(FEW, len(side)))
        return open_vectors(file.vectors, len(side.text_of_line)).scaled(first)
    if 0 in finished(folder):
        return np.array(load_vectors(folder)[:FEW])
    task = (file.encode or no_model, side.texts[:FEW])
    [vectors] = (workers or Workers()).run(encoded, [task], encodes=True)
    # A side without texts was refused before.
    assert vectors is not None
    return vectors


def one_width(files: Iterable[TextFile], tables: Sequence[NDArray[np.floating]]) -> None:
    """Refuse vectors of two models.

    Raises:
        DataError: the vectors of the two sides have different widths.
    """
    if tables[0].shape[1] != tables[1].shape[1]:
        widths = [
            f"{t.shape[1]} of {[*file.vectors, file.path][0]}"
            for file, t in zip(files, tables, strict=True)
        ]
        raise DataError(
            f"expected vectors of one width, found {' and '.join(widths)}; use one model for both"
            " sides"
        )


def _warnings(file: TextFile, vectors: Float32[ndarray, "n d"]) -> list[str]:
    """Return warnings on suspicious user-provided vectors; those of a model are not examined."""
    if not file.vectors or not (zeros := count_zeros(vectors)):
        return []
    return [
        f"warning: {file.vectors[0]}: {zeros:,} texts have a vector of zeros, which has no near"
        " neighbors; embed them again"
    ]


def _note(file: TextFile, side: NumberedTexts) -> str:
    """Describe the contents of a side."""
    note = f"{file.path}: {count_of(len(side.text_of_line), 'lines')}, {len(side):,} texts"
    if file.held_out:
        note += f", including {len(file.held_out):,} held-out texts"
    if side.blank:
        note += f", {side.blank:,} blank lines left out"
    return note


def left_out_lines(reasons: Sequence[str]) -> list[str]:
    """Return report lines on files of folders that were left out; the first ones are named."""
    lines = [f"left out: {reason}" for reason in reasons[:SHOWN_LEFT_OUT]]
    if len(reasons) > SHOWN_LEFT_OUT:
        lines.append(f"left out: {len(reasons) - SHOWN_LEFT_OUT:,} more files")
    return lines


def _search(
    vectors: Mapping[str, Float32[ndarray, "n d"]],
    work: Path | None,
    name: str,
    config: PairSearch,
    shard: tuple[int, int] | None,
    workers: Workers | None,
    progress: Progress,
) -> tuple[TileLists, str]:
    """Find the neighbors of all vectors, or those of a shard.

    Args:
        vectors: of both sides.
        work: the work folder; None = the neighbors stay in memory.
        name: of the part with the neighbors.
        config: how to search.
        shard: see ``mine_files``.
        workers: who searches.
        progress: receives the progress of the work.

    Returns:
        The neighbors, and a note for the user or nothing.
    """
    x, y = vectors["x"], vectors["y"]
    how = config.approximation
    plan = TilePlan.of(x, y, k=config.k, memory=config.memory_bytes, least_tiles=tiles_for(workers))
    folder = None
    own = None
    if work is not None:
        # Each k and each kind of search has its own folder; margin and retrieval do not change it.
        if how is not None:
            name += f"-{how.kind}-{how.effort}"
        folder = work / name
        own = folder
        if shard is not None:
            own = folder / f"{shard[0]}of{shard[1]}"
        # An interrupted search resumes with the same tiles, even if the memory is different now.
        shards = sorted(path.parent for path in folder.glob(f"*of*/{JOURNAL}"))
        plan = plan.begun([own, *shards], config.memory_bytes)
        if shards and shard is None:
            join_shards(plan, shards, folder)
    if how is not None:
        return find_approximately(
            x,
            y,
            plan,
            folder,
            how,
            memory=config.memory_bytes,
            device=config.search_device,
            progress=progress,
        )
    lists = search_tiles(
        x,
        y,
        plan,
        own,
        shard=shard or (1, 1),
        workers=workers,
        device=config.search_device,
        progress=progress,
    )
    return lists, ""


def vectors_of(work: Path, side: str) -> Path:
    """Return the folder of the vectors of a side in a work folder."""
    return work / f"vectors-{side}"


def prepare_side(
    file: TextFile,
    config: PairSearch,
    work: Workspace,
    name: str,
    progress: Progress,
    *,
    held_out: Sequence[Line] = (),
) -> NumberedTexts:
    """Write the numbered texts of a file in a step of the work folder; see ``build_side``.

    Args:
        file: the side.
        config: how pairs are found.
        work: the work folder.
        name: of the step.
        progress: receives the progress of the work.
        held_out: lines after those of the file. A step with other held-out lines is replaced.

    Raises:
        ConfigError: there are vectors of other texts.
    """
    extra = [*file.extra, *held_out]
    strip = not config.is_like_laser
    match = config.document_match
    read = reader(
        file.files,
        file.layout,
        match,
        language=file.language,
        strip=strip,
        bad=file.bad,
        labels=file.labels,
    )
    # Settings that determine which texts there are. A side with other settings is made again.
    facts = [*map(sha256_file, file.files), file.layout, config.equal, str(config.is_like_laser)]
    if match is not None:
        facts.append(f"{match.how} {file.language}")
    if file.bad is not None and file.bad.skips:
        facts.append("skip")
    # The names of lines are stored with their texts.
    if file.labels:
        facts.append(hashlib.sha256("\n".join(file.labels).encode()).hexdigest())
    digest = hashlib.sha256("".join(f"{line.text}\n" for line in extra).encode()).hexdigest()
    key = " ".join([*facts, digest])
    if work.is_done(name, key):
        return NumberedTexts.load(work.path / name)
    # Texts of another input are replaced only if this loses no vectors of them.
    if held_out:
        _drop_parts(work.path, name)
    elif work.key(name) not in (None, key) and finished(vectors_of(work.path, name)):
        raise ConfigError(
            f"{work.path / name} was made from other texts or settings; choose another --work"
            " folder or remove it"
        )
    with work.step(name, key) as folder:
        build_side(
            folder,
            lambda: chain(read(), extra),
            path=file.path,
            equal=config.equal,
            keep_blank=config.is_like_laser,
            memory=config.memory_bytes,
            label=f"reading {name_of(file.path)}",
            progress=progress,
        )
    return NumberedTexts.load(work.path / name)


def _drop_parts(work: Path, name: str) -> None:
    """Remove vectors and neighbors of other held-out texts; making the vectors again is fast."""
    remove_entries(vectors_of(work, name), VECTOR_FILES)
    for folder in work.glob(f"neighbors-{_MIXED}k*"):
        remove_entries(folder, NEIGHBOR_FILES)


def vectors_identity(file: TextFile, model: str, texts: str) -> dict[str, Any]:
    """Return the identity of a side's vectors, which all vectors in a folder share.

    Args:
        file: the side.
        model: the identity of the model and of its input format.
        texts: digest of the texts.
    """
    digests = " ".join(map(sha256_file, file.vectors)) or None
    return {"model": model, "portion": PORTION, "vectors": digests, "texts": texts}


def embed_file(
    file: TextFile,
    side: NumberedTexts,
    config: PairSearch,
    folder: Path,
    identity: Mapping[str, Any],
    shard: tuple[int, int],
    workers: Workers | None,
    progress: Progress,
) -> int:
    """Make the vectors of a side; see ``embed_side``."""
    known = None
    if file.vectors:
        lines = len(side.text_of_line)
        known = open_vectors(file.vectors, lines, last=config.is_like_laser)
    # Known vectors are checked before anything is written: the user may correct a refused file, and
    # its digest then changes.
    if known is not None and not finished(folder):
        check_known(side, known)
    # Where all vectors are known there is nothing for workers to do.
    if not file.encode:
        workers = None
    return embed_side(
        side,
        file.encode or no_model,
        folder,
        identity=identity,
        known=known,
        path=file.path,
        shard=shard,
        workers=workers,
        label=f"embedding {name_of(file.path)}",
        progress=progress,
    )


def _retrieve(
    lists: TileLists,
    work: Path | None,
    config: PairSearch,
    refuses: Refuses | None,
    progress: Progress,
) -> NDArray[np.void]:
    """Return the pairs of the retrieval, best first, in memory or mapped from a work folder."""
    plan = lists.plan
    sizes = {"x": plan.n, "y": plan.m}
    folder = None
    if work is not None:
        folder = work / "scores"
    scored = CandidatePairs.of_blocks(lists.blocks, sizes, margin=config.margin, folder=folder)
    # LASER's script writes the pairs of one direction in the order of their texts.
    parts = scored.retrieved(
        config.retrieval,
        memory=config.memory_bytes,
        ordered=not config.is_like_laser,
        refuses=refuses,
    )
    total = scored.retrieved_count(config.retrieval)
    if folder is None:
        return np.concatenate([np.zeros(0, FOUND), *parts])
    path = folder / "found.bin"
    with open(path, "wb") as file:
        for part in parts:
            file.write(part.tobytes())
            progress.start(total, "texts", "choosing pairs", done=scored.looked_at)
    return mapped(path, FOUND)


def _retrieve_without(
    lists: TileLists,
    config: PairSearch,
    refuses: Refuses | None,
    hidden: NDArray[np.void],
) -> NDArray[np.void]:
    """Retrieve again with the two texts of some pairs hidden from each other.

    If a hidden pair was right, each of its texts gets the partner that it would have if its
    translation were not among the texts. So the new pairs are wrong pairs of the mined texts
    themselves.

    Args:
        lists: the neighbors.
        config: how pairs are found.
        refuses: see ``mining.candidates.retrieve``.
        hidden: ``FOUND`` records, each text in at most one.

    Returns:
        ``FOUND`` records of the new pairs in which a text was hidden from its partner, in memory.
    """
    plan = lists.plan
    partners = {"x": np.full(plan.n, -1, np.int64), "y": np.full(plan.m, -1, np.int64)}
    for side, other in (("x", "y"), ("y", "x")):
        partners[side][hidden[side]] = hidden[other]

    def blocks(side: Any) -> Iterator[tuple[int, Neighbors]]:
        for start, neighbors in lists.blocks(side):
            stop = start + len(neighbors.indices)
            yield start, without_partners(neighbors, partners[side][start:stop])

    sizes = {"x": plan.n, "y": plan.m}
    scored = CandidatePairs.of_blocks(blocks, sizes, margin=config.margin)
    found = [np.zeros(0, FOUND)]
    for part in scored.retrieved(config.retrieval, memory=config.memory_bytes, refuses=refuses):
        was_hidden = (partners["x"][part["x"]] >= 0) | (partners["y"][part["y"]] >= 0)
        # The hidden partner may be the only neighbor of a text, and is then still found.
        is_other = partners["x"][part["x"]] != part["y"]
        found.append(part[was_hidden & is_other])
    return np.concatenate(found)
