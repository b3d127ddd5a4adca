"""The files of an alignment: sentences, links in vecalign's format, lists of documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.corpus.formats import guess_format
from interlingua.corpus.monolingual import language_of
from interlingua.corpus.sentence_splitting import split_text
from interlingua.corpus.sentence_table import is_table, read_column, refuse_column
from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike, atomic_write, open_text, stem_and_suffix
from interlingua.languages import resolve
from interlingua.mining.alignment import Link

BITEXT_SUFFIXES = (".csv", ".xlsx", ".xlsm", ".tmx", ".jsonl", ".ndjson")
"""Of files that hold the linked sentences, and not the links."""
_LINK = re.compile(r"\s*\[([\d\s,]*)\]\s*:\s*\[([\d\s,]*)\]\s*(?::\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*)?")


class DocumentPair(NamedTuple):
    """Two files of one sentence per line, and what belongs to them.

    Attributes:
        source: path of the one.
        target: path of the other.
        output: where their links go; None = standard output.
        gold: links that are right.
    """

    source: str
    target: str
    output: str | None = None
    gold: str | None = None


def read_sentences(
    path: PathLike, *, split_as: str | None = None, column: str | None = None, language: str | None = None
) -> list[str]:
    """The lines of a text file, blank ones too, those of a table's column, or the sentences of plain text.

    Args:
        path: the file.
        split_as: the language by which plain text is split, empty where it is unknown; None = a sentence per line.
        column: of a table, see ``sentence_table.read_column``.
        language: that a table's column may be called by.

    Raises:
        DataError: the file is missing, is not UTF-8, or holds nothing but blank lines.
    """
    refuse_column(column, path)
    if is_table(path):
        sentences = list(read_column(path, column=column, language=language))
    else:
        with open_text(path) as lines:
            sentences = [line.rstrip("\r\n") for line in lines]
    if not any(map(str.strip, sentences)):
        raise DataError("the document is empty; expected a sentence per line", path=path)
    return sentences if split_as is None else split_text(sentences, split_as)


def sentence_files(links: PathLike) -> tuple[str, str]:
    """Where the sentences of both documents go that were split, by the name of the file of links."""
    return f"{links}.source.txt", f"{links}.target.txt"


def write_sentences(links: PathLike, source: Sequence[str], target: Sequence[str]) -> None:
    """Writes the sentences that the numbers of links stand for, a line each, next to the file of links."""
    for path, sentences in zip(sentence_files(links), (source, target), strict=True):
        with atomic_write(path) as file:
            file.writelines(f"{sentence}\n" for sentence in sentences)


def pair_languages(
    source: PathLike, target: PathLike, given: tuple[str | None, str | None] = (None, None)
) -> tuple[str, str]:
    """The languages of two documents: those given, else those that both names tell; empty where unknown.

    A name tells a language only where the other name tells another one: ``to.txt`` alone need not be Tongan.

    Args:
        source: path of the one.
        target: path of the other.
        given: in any code.

    Raises:
        DataError: a language is given that is unknown.
    """
    codes = [resolve(language).code if language else "" for language in given]
    try:
        named = [language_of(Path(path)) for path in (source, target)]
    except DataError:
        named = ["", ""]
    if named[0] == named[1]:
        named = ["", ""]
    return codes[0] or named[0], codes[1] or named[1]


def document_pairs(
    source: PathLike | None,
    target: PathLike | None,
    list_file: PathLike | None = None,
    output: PathLike | None = None,
    gold: PathLike | None = None,
) -> list[DocumentPair]:
    """What is to be aligned: two files, or those of a list.

    Args:
        source: a file.
        target: sentences of the target.
        list_file: see ``read_list``; in place of these two.
        output: file for the links, standard output by default; with a list a folder.
        gold: links that are right; a list names its own.

    Raises:
        ConfigError: neither or both are given, a list without a place for the links, or links under the name of a
            bitext.
    """
    if list_file is None:
        if source is None or target is None:
            raise ConfigError("name two documents, SOURCE and TARGET, or a list of many with --list")
        links, right = (None if name is None else str(name) for name in (output, gold))
        refuse_bitext_name(links)
        return [DocumentPair(str(source), str(target), links, right)]
    if source is not None or gold is not None:
        raise ConfigError("--list names documents, and gold links in its fourth column; drop SOURCE, TARGET and --gold")
    found = read_list(list_file, output)
    if any(pair.output is None for pair in found):
        raise ConfigError("links of many documents need files: a folder with --output, or the third column of --list")
    return found


def check_texts(path: PathLike | None, languages: Iterable[tuple[str, str]]) -> None:
    """Refuses a bitext of a format with languages where none are known, before the work begins.

    Args:
        path: of the bitext, if there is to be one.
        languages: of each document pair, see ``pair_languages``.

    Raises:
        ConfigError: the languages are missing.
    """
    known = all(source and target for source, target in languages)
    if path is not None and guess_format(path) not in ("tsv", "csv", "xlsx") and not known:
        raise ConfigError(
            f"{path} tells its languages; name both with --source-language and --target-language, or call the documents"
            " by them (chapter.de.txt)"
        )


def refuse_bitext_name(links: str | None) -> None:
    """Refuses a file of links that is called as one of linked sentences.

    Raises:
        ConfigError: it is.
    """
    suffix = stem_and_suffix(links)[1] if links else ""
    if suffix in BITEXT_SUFFIXES:
        raise ConfigError(
            f"{links}: links are written as lines of text ([0, 1]:[2]:0.12), not {suffix}; name another file, and for"
            f" the linked sentences --texts {links}"
        )


def read_list(path: PathLike, folder: PathLike | None = None) -> list[DocumentPair]:
    """The documents of a list.

    Args:
        path: of the list, ``source TAB target`` in a line, then optionally TAB the file for their links, then
            optionally TAB that of the gold ones; blank lines and those that begin with ``#`` are left out.
        folder: where links without a named file go: the source's name and ``.align``.

    Raises:
        DataError: a line has another number of columns, two documents would be written to one file, or there is none.
    """
    found: list[DocumentPair] = []
    outputs: dict[str, int] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
            if len(cells) not in (2, 3, 4) or not all(cells[:2]):
                expected = "source TAB target, then optionally TAB links TAB gold"
                raise DataError(f"expected {expected}, got {len(cells)} columns", path=path, line=number)
            source, target, output, gold = (*cells, "", "")[:4]
            if not output and folder is not None:
                output = str(Path(folder) / f"{Path(source).name}.align")
            if output and output in outputs:
                raise DataError(
                    f"its links would go to {output} as those of line {outputs[output]} do; name another file in the"
                    " third column",
                    path=path,
                    line=number,
                )
            refuse_bitext_name(output)
            outputs[output] = number
            found.append(DocumentPair(source, target, output or None, gold or None))
    if not found:
        raise DataError("names no documents; expected source TAB target in every line", path=path)
    return found


def link_line(link: Link) -> str:
    """``[0, 1]:[2]:0.120000``, as vecalign writes it."""
    return f"{list(link.source)}:{list(link.target)}:{link.cost:.6f}\n"


def read_links(path: PathLike, lengths: tuple[int, int] | None = None) -> list[Link]:
    """Links in vecalign's format, with or without a cost.

    Args:
        path: of the file.
        lengths: sentences of both documents.

    Raises:
        DataError: a line is no link, or names a sentence that is not there.
    """
    found = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            match = _LINK.fullmatch(line.rstrip("\r\n"))
            if match is None:
                got = f"got {line.strip()[:60]!r}"
                raise DataError(f"expected [0, 1]:[2] or [0, 1]:[2]:0.12, {got}", path=path, line=number)
            source, target = (tuple(map(int, re.findall(r"\d+", match[side]))) for side in (1, 2))
            for side, length in zip((source, target), lengths or (), strict=False):
                if side and max(side) >= length:
                    raise DataError(
                        f"names sentence {max(side)} (counted from 0) of a document of {length}; is it of these files?",
                        path=path,
                        line=number,
                    )
            found.append(Link(source, target, float(match[3] or 0)))
    return found
