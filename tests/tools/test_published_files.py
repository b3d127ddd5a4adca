from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from interlingua.config import load_toml
from interlingua.config.languages import resolve_language
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.errors import DataError
from tools import published_files as tool

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def put(server, address, content):
    path = server / address.removeprefix("https://")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def moses_zip(first, second):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in (first, second):
            archive.writestr(name, text)
    return held.getvalue()


def test_a_corpus_lands_where_its_server_has_it(tmp_path):
    server, out = tmp_path / "server", tmp_path / "data"
    one = tool.Files("ems62", tuple(tool.opus("OpenSubtitles", "v2018", ["de", "zh", "yo"])), "")
    content = moses_zip(
        ("OpenSubtitles.de-en.de", "Hallo\n"), ("OpenSubtitles.de-en.en", "Hello\n")
    )
    put(server, f"{tool.OPUS}/OPUS-OpenSubtitles/v2018/moses/de-en.txt.zip", content)
    put(server, f"{tool.OPUS}/OPUS-OpenSubtitles/v2018/moses/en-zh_cn.txt.zip", content)
    assert tool.fetch_files(one, out, server=f"file://{server}") == (2, 1)
    (pair,) = read_pairs(str(out / "ems62" / "OpenSubtitles" / "de-en.txt.zip"))
    assert pair[:4] == ("Hallo", "Hello", "deu_Latn", "eng_Latn")


def test_what_is_there_is_not_fetched_again(tmp_path):
    server, out = tmp_path / "server", tmp_path / "data"
    one = tool.Files(
        "nq",
        (tool.Remote("https://example.org", "a.json"), tool.Remote("https://example.org", "b")),
        "",
    )
    put(server, "https://example.org/a.json", b"first")
    with pytest.raises(DataError, match="/b"):
        tool.fetch_files(one, out, server=f"file://{server}")
    put(server, "https://example.org/a.json", b"changed")
    put(server, "https://example.org/b", b"second")
    assert tool.fetch_files(one, out, server=f"file://{server}") == (2, 0)
    assert (out / "nq" / "a.json").read_bytes() == b"first"


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_is_unpacked_without_a_doubled_folder(tmp_path, kind):
    held = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(held, "w") as archive:
            archive.writestr("set/file.txt", "text")
    else:
        with tarfile.open(fileobj=held, mode="w:gz") as archive:
            member = tarfile.TarInfo("set/file.txt")
            member.size = 4
            archive.addfile(member, io.BytesIO(b"text"))
    put(tmp_path / "server", f"https://example.org/set.{kind}", held.getvalue())
    one = tool.Files("x", (tool.Remote("https://example.org", f"set.{kind}"),), "", unpack=True)
    tool.fetch_files(one, tmp_path, server=f"file://{tmp_path / 'server'}")
    assert (tmp_path / "x" / "set" / "file.txt").read_text() == "text"


def test_a_broken_archive_is_named(tmp_path):
    put(tmp_path / "server", "https://example.org/set.zip", b"cut")
    one = tool.Files("x", (tool.Remote("https://example.org", "set.zip"),), "", unpack=True)
    with pytest.raises(DataError, match="archive"):
        tool.fetch_files(one, tmp_path, server=f"file://{tmp_path / 'server'}")


@pytest.mark.parametrize("corpus", ["GlobalVoices", "OpenSubtitles", "TED2020", "Tatoeba"])
def test_a_corpus_own_codes_are_the_papers_languages(tmp_path, corpus):
    for language, code in tool.OPUS_CODES[corpus].items():
        (remote,) = tool.opus(corpus, "v1", [language])
        path = tmp_path / Path(remote.path).name
        path.write_bytes(
            moses_zip(
                (f"{corpus}.{path.stem[:-4]}.en", "a\n"),
                (f"{corpus}.{path.stem[:-4]}.{code}", "b\n"),
            )
        )
        (pair,) = read_pairs(str(path))
        assert {pair.source_language, pair.target_language} == {
            "eng_Latn",
            resolve_language(language).code,
        }


def test_the_thai_corpus_is_read_by_its_columns(tmp_path):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("scb-mt-en-th-2020/sms.csv", "en_text,th_text\nHello,สวัสดี\n")
    one = tool.FILES["scb"]
    put(tmp_path / "server", f"{one.files[0].server}/{one.files[0].path}", held.getvalue())
    tool.fetch_files(one, tmp_path / "data", server=f"file://{tmp_path / 'server'}")
    (path,) = (tmp_path / "data" / "kakao14" / "scb-mt-en-th-2020").glob("*.csv")
    (pair,) = read_pairs(str(path))
    assert pair[:4] == ("Hello", "สวัสดี", "eng_Latn", "tha_Thai")


def test_every_set_is_on_the_data_page():
    assert [name for name in tool.FILES if f"`{name}`" not in PAGE] == []


def test_ems_corpora_are_those_its_toml_reads():
    """Compare the fetched corpora with those read. Each difference changes the paper's mixture."""
    config = load_toml(ROOT / "experiments" / "ems" / "prepare_ems62.toml")
    read = {Path(path).parent.name for source in config["sources"] for path in source["paths"]}
    assert read == {remote.folder for remote in tool.FILES["ems62"].files}
    assert {resolve_language(code) for code in config["languages"]} == {
        resolve_language(code) for code in (*tool.EMS, "en")
    }
    assert len(config["languages"]) == 62


def test_kakao_corpora_are_those_its_toml_reads():
    config = load_toml(ROOT / "experiments" / "calibrated" / "prepare_calibrated14.toml")
    assert {resolve_language(code) for code in config["languages"]} == {
        resolve_language(code) for code in (*tool.KAKAO, "en")
    }
