"""Files that servers hand out one by one: what the papers train and are measured on.

No request is sent before ``fetch_files``. Addresses were taken from the publishers'
pages and from scripts that use them; none of the servers publishes a checksum, so the digest of
each file is written next to it.
"""

from __future__ import annotations

import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from interlingua.errors import DataError
from interlingua.storage.files import atomic_directory, atomic_write, sha256_file

MR_TYDI = [
    "arabic", "bengali", "english", "finnish", "indonesian", "japanese", "korean", "russian",
    "swahili", "telugu", "thai",
]  # fmt: skip
IR = ["ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th"]
"""Mr. TyDi's languages, by WikiMatrix's codes."""
EMS = [
    "af", "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "eo", "es", "et", "eu", "fa", "fi", "fr",
    "gl", "gu", "he", "hi", "hr", "hu", "hy", "id", "it", "ja", "jv", "ka", "kk", "ko", "ku", "lt",
    "lv", "mk", "ml", "mn", "mr", "ms", "my", "nb", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sq",
    "sr", "sv", "sw", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "yo", "zh",
]  # fmt: skip
"""EMS's 61 languages besides English (Mao et al. 2023, Table I)."""
KAKAO = ["ar", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"]
"""The 14 languages of calibrated similarity (Ham and Kim 2021, section 4)."""
UN = ["ar", "es", "fr", "ru", "zh"]
OPUS = "https://object.pouta.csc.fi"
FACEBOOK = "https://dl.fbaipublicfiles.com"
SBERT = "https://sbert.net"
GITHUB = "https://github.com"
OPUS_CODES = {
    "GlobalVoices": {"ja": "jp", "zh": "zhs"},
    "OpenSubtitles": {"zh": "zh_cn"},
    "TED2020": {"zh": "zh_cn"},
    "Tatoeba": {"zh": "cmn"},
}
"""Languages that a corpus of OPUS writes otherwise; of Chinese the simplified."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file on a server."""

    server: str
    path: str
    """Below the server."""
    folder: str = ""
    """Below the set's folder, where it goes; "" = the set's folder itself."""
    may_lack: bool = False
    """True if the server may lack it, as for corpora without a language."""


@dataclass(frozen=True, slots=True)
class Files:
    """A set that is one or more files."""

    folder: str
    """Below ``--out``; "." = ``--out`` itself."""
    files: tuple[Remote, ...]
    note: str
    """Description for ``--list``."""
    unpack: bool = False
    """True if its archives are unpacked; readers take packed text as it is."""


def opus(corpus: str, version: str, languages: Iterable[str]) -> Iterator[Remote]:
    """Yield the archives of a corpus of OPUS with English, in Moses' form, one per language."""
    for language in languages:
        code = OPUS_CODES.get(corpus, {}).get(language, language)
        pair = "-".join(sorted((code, "en")))
        yield Remote(OPUS, f"OPUS-{corpus}/{version}/moses/{pair}.txt.zip", corpus, may_lack=True)


def wikimatrix(pairs: Iterable[tuple[str, str]]) -> Iterator[Remote]:
    """Yield WikiMatrix as published, with the margin of every pair, one file per language pair."""
    for pair in pairs:
        name = f"WikiMatrix.{'-'.join(sorted(pair))}.tsv.gz"
        yield Remote(FACEBOOK, f"laser/WikiMatrix/v1/{name}", may_lack=True)


def ems_files() -> Iterator[Remote]:
    """Yield EMS's corpora (Mao et al. 2023, section IV-A)."""
    yield from opus("Europarl", "v8", EMS)
    yield from opus("GlobalVoices", "v2018q4", EMS)
    yield from opus("News-Commentary", "v16", EMS)
    yield from opus("OpenSubtitles", "v2018", EMS)
    yield from opus("TED2020", "v1", EMS)
    yield from opus("UNPC", "v1.0", UN)
    yield from opus("WikiMatrix", "v1", EMS)
    yield from opus("Tatoeba", "v2023-04-12", EMS)


def kakao_files() -> Iterator[Remote]:
    """Yield three of the seven corpora of Ham and Kim (2021), section 4.

    ``scb`` is one more, docs/data.md has the others.
    """
    for language in ("de", "es", "fr", "it", "nl", "pl", "pt", "ru"):
        path = f"web-language-models/paracrawl/release6/en-{language}.txt.gz"
        yield Remote("https://s3.amazonaws.com", path, "ParaCrawl")
    yield from opus("OpenSubtitles", "v2018", KAKAO)
    yield from opus("UNPC", "v1.0", UN)


NQ = ("biencoder-nq-train.json.gz", "biencoder-nq-dev.json.gz")
MR_TYDI_PATH = "jimmylin/mr.tydi/-/raw/master/data/mrtydi-v1.1-{}.tar.gz"
SCB_PATH = (
    "vistec-AI/dataset-releases/releases/download/scb-mt-en-th-2020_v1.0/scb-mt-en-th-2020.zip"
)
FILES = {
    "nq": Files(
        "nq",
        tuple(Remote(FACEBOOK, f"dpr/data/retriever/{name}") for name in NQ),
        "Natural Questions with DPR's passages",
    ),
    "WikiMatrix": Files(
        "WikiMatrix",
        tuple(wikimatrix((first, second) for first in IR for second in IR if first < second)),
        "WikiMatrix between the languages of Mr. TyDi",
    ),
    "mrtydi": Files(
        "mrtydi",
        tuple(Remote("https://git.uwaterloo.ca", MR_TYDI_PATH.format(name)) for name in MR_TYDI),
        "Mr. TyDi 1.1: questions, judgments and 58 million passages",
        unpack=True,
    ),
    "nli_sts": Files(
        ".",
        (Remote(SBERT, "datasets/AllNLI.tsv.gz"), Remote(SBERT, "datasets/stsbenchmark.tsv.gz")),
        "SNLI and MultiNLI in one table, and STS benchmark",
    ),
    "sts17_extended": Files(
        ".",
        (Remote(SBERT, "datasets/STS2017-extended.zip"),),
        "STS17 with the seven pairs of languages",
        unpack=True,
    ),
    "ems62": Files("ems62", tuple(ems_files()), "EMS's corpora for 62 languages, from OPUS"),
    "kakao14": Files(
        "kakao14", tuple(kakao_files()), "calibrated similarity's corpora for 14 languages"
    ),
    "scb": Files(
        "kakao14", (Remote(GITHUB, SCB_PATH),), "calibrated similarity's Thai corpus", unpack=True
    ),
}


def fetch_files(one: Files, out: Path, *, server: str = "") -> tuple[int, int]:
    """Fetch what is not there yet; each file lands whole or not at all.

    Args:
        one: the set.
        out: the folder that holds the sets.
        server: read all files from here instead, in folders called as their hosts; a mirror, or
            ``file:///...``.

    Returns:
        Files that are there now, and files that their server does not have.

    Raises:
        DataError: a file can't be had.
    """
    there, lacking = 0, 0
    for remote in one.files:
        path = out / one.folder / remote.folder / Path(remote.path).name
        done = path.with_name(path.name + ".sha256")
        if not done.exists():
            address = f"{_server_of(remote, server)}/{remote.path}"
            if not _download(address, path, may_lack=remote.may_lack):
                lacking += 1
                continue
            if one.unpack:
                _unpack(path)
            with atomic_write(done) as file:
                file.write(f"{sha256_file(path)}  {path.name}  {address}\n")
        there += 1
    return there, lacking


def _server_of(remote: Remote, server: str) -> str:
    if not server:
        return remote.server
    return f"{server.rstrip('/')}/{remote.server.removeprefix('https://')}"


def _download(address: str, path: Path, *, may_lack: bool) -> bool:
    """Return whether the server has the file, which is then at ``path``."""
    try:
        with (
            urllib.request.urlopen(address, timeout=60) as response,
            atomic_write(path, "wb") as file,
        ):
            shutil.copyfileobj(response, file, 2**20)
    except urllib.error.HTTPError as error:
        # S3 answers 403 for what is not there.
        if may_lack and error.code in (403, 404):
            return False
        raise DataError(f"the server answered {error.code}", path=address) from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        if may_lack and isinstance(reason, FileNotFoundError):
            return False
        raise DataError(f"can't be fetched: {reason}", path=address) from error
    return True


def _unpack(path: Path) -> None:
    """Unpack an archive into the named folder, without its inner folder of that name."""
    name = path.name.removesuffix(".zip").removesuffix(".tar.gz")
    with atomic_directory(path.parent / name, overwrite=True) as folder:
        try:
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    archive.extractall(folder)
            else:
                with tarfile.open(path) as archive:
                    archive.extractall(folder, filter="data")
        except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError) as error:
            raise DataError(
                "the archive can't be unpacked; remove it to fetch it again", path=path
            ) from error
        inner = folder / name
        if [*folder.iterdir()] == [inner] and inner.is_dir():
            for item in inner.iterdir():
                item.rename(folder / item.name)
            inner.rmdir()
