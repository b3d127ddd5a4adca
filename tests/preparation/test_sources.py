import os
from collections import Counter
from pathlib import Path

import pytest

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import TextPair, write_pairs
from interlingua.errors import DataError
from interlingua.preparation import sources
from interlingua.preparation.config import SourceConfig
from interlingua.preparation.sources import (
    Chunk,
    check_sources,
    describe_file,
    find_files,
    is_turned,
    read_chunks,
)
from tests.preparation.conftest import config_for


def test_globs_are_expanded_and_sorted(tmp_path):
    for name in ("b.de-en.tsv", "a.de-en.tsv", "c.txt"):
        (tmp_path / name).write_text("")
    paths = (tmp_path / "*.tsv", tmp_path / "a.de-en.tsv", tmp_path / "none.tsv")
    found = find_files(SourceConfig(paths=paths))
    assert [Path(path).name for path in found] == ["a.de-en.tsv", "b.de-en.tsv", "none.tsv"]
    with pytest.raises(DataError, match="no file matches"):
        find_files(SourceConfig(paths=(tmp_path / "*.zip",)))
    assert find_files(SourceConfig(paths=(Path("hf:a/b*:de-en"),))) == ["hf:a/b*:de-en"]


def test_a_moses_pair_is_found_once(tmp_path):
    for code, text in (("de", "eins\n"), ("en", "one\n")):
        (tmp_path / f"x.de-en.{code}").write_text(text)
    source = SourceConfig(paths=(tmp_path / "x.*",), format="moses")
    (path,) = find_files(source)
    assert describe_file(path, source).bytes == 9
    (chunk,) = read_chunks(path, source, 3, skipped=Counter())
    assert chunk == Chunk(3, ("deu_Latn", "eng_Latn"), ["eins"], ["one"], [None])


@pytest.mark.parametrize("name", ["x.csv", "x.xlsx"])
def test_spreadsheets_are_read(tmp_path, name):
    write_pairs([TextPair("one", "eins", "eng_Latn", "deu_Latn")], tmp_path / name)
    source = SourceConfig(paths=(tmp_path / name,))
    (chunk,) = read_chunks(str(tmp_path / name), source, 0, skipped=Counter())
    assert chunk == Chunk(0, ("deu_Latn", "eng_Latn"), ["eins"], ["one"], [None])


def test_pairs_below_the_least_score_are_counted(tmp_path):
    path = tmp_path / "de-en.tsv"
    path.write_text("1.05\ta\tb\n1.04\tc\td\n1.0399\te\tf\n", encoding="utf-8")
    source = SourceConfig(paths=(path,), min_score=1.04)
    (chunk,) = read_chunks(str(path), source, 0, skipped=Counter())
    assert (chunk.sources, chunk.scores) == (["a", "c"], [1.05, 1.04])
    assert (chunk.below, chunk.read) == (1, 3)


def test_a_pair_without_a_score_is_refused_where_scores_decide(tmp_path):
    path = tmp_path / "x.jsonl"
    good = '{"source": "a", "target": "b", "source_language": "de", "target_language": "en"'
    path.write_text(f'{good}, "score": 1}}\n{good}}}\n', encoding="utf-8")
    source = SourceConfig(paths=(path,), max_pairs=1, max_pairs_by="score")
    with pytest.raises(DataError, match="min_score and max_pairs_by"):
        list(read_chunks(str(path), source, 0, skipped=Counter()))
    bad = BadLines("skip")
    (chunk,) = read_chunks(str(path), source, 0, skipped=Counter(), bad=bad)
    assert (chunk.sources, bad.count) == (["a"], 1)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ({"paths": (Path("absent.de-en.tsv"),)}, "file not found"),
        ({"paths": (Path("absent/*.tsv"),)}, "no file matches"),
        ({"paths": (Path("x.docx"),)}, "format of bitext"),
        ({"paths": (Path("news.tsv"),)}, "the languages"),
        ({"paths": (Path("good.de-en.tsv"),), "min_score": 1.0}, "a pair has no score"),
    ],
)
def test_every_source_is_looked_at_before_any_work(tmp_path, monkeypatch, last, message):
    monkeypatch.chdir(tmp_path)
    for name in ("good.de-en.tsv", "news.tsv"):
        (tmp_path / name).write_text("a\tb\n")
    good = SourceConfig(paths=(Path("good.de-en.tsv"), Path("hf:never/asked:de-en")))
    check_sources(config_for(tmp_path, tmp_path, sources=(good,)))
    with pytest.raises(DataError, match=message):
        check_sources(config_for(tmp_path, tmp_path, sources=(good, SourceConfig(**last))))
    absent = config_for(tmp_path, tmp_path, sources=(good,), decontaminate=(Path("nowhere"),))
    with pytest.raises(DataError, match="nowhere"):
        check_sources(absent)


def test_describe_a_folder_and_a_hub_name(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"12345")
    source = SourceConfig(paths=(tmp_path,))
    assert describe_file(str(tmp_path), source).bytes == 5
    assert describe_file("hf:a/b", source) == sources.SourceFile(path="hf:a/b", bytes=0, sha256="")


@pytest.mark.parametrize(
    ("pair", "turned"),
    [
        (("deu_Latn", "eng_Latn"), False),
        (("eng_Latn", "deu_Latn"), True),
        (("eng_Latn", "zho_Hans"), True),
        (("zho_Hans", "eng_Latn"), False),
        (("fra_Latn", "deu_Latn"), True),
        (("deu_Latn", "fra_Latn"), False),
    ],
)
def test_english_is_always_the_target(pair, turned):
    assert is_turned(*pair) == turned


def test_chunks_are_turned_split_and_filtered(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_PAIRS", 2)
    path = tmp_path / "x.jsonl"
    lines = [
        f'{{"translation": {{"{a}": "{a}{i}", "{b}": "{b}{i}"}}}}\n'
        for i in range(3)
        for a, b in (("en", "de"), ("fr", "de"), ("it", "en"))
    ]
    path.write_text("".join(lines))
    skipped = Counter()
    source = SourceConfig(paths=(path,))
    wanted = frozenset({"eng_Latn", "deu_Latn", "fra_Latn"})
    chunks = list(read_chunks(str(path), source, 0, skipped=skipped, wanted=wanted))
    assert [(chunk.language_pair, chunk.sources, chunk.targets) for chunk in chunks] == [
        (("deu_Latn", "eng_Latn"), ["de0", "de1"], ["en0", "en1"]),
        (("deu_Latn", "fra_Latn"), ["de0", "de1"], ["fr0", "fr1"]),
        (("deu_Latn", "eng_Latn"), ["de2"], ["en2"]),
        (("deu_Latn", "fra_Latn"), ["de2"], ["fr2"]),
    ]
    assert skipped == {"other language": 3}
    assert chunks[0].pairs()[1].source_language == "deu_Latn"


def test_a_pipe_is_not_read_before_the_work(tmp_path):
    os.mkfifo(tmp_path / "pipe.tsv")
    source = SourceConfig(paths=(tmp_path / "pipe.tsv",), languages=("de", "en"))
    # It would wait for ever.
    check_sources(config_for(tmp_path, tmp_path, sources=(source,)))


def test_folders_and_patterns_of_translators_files_are_bitexts(tmp_path):
    resources = '<resources><string name="a">{}</string></resources>'
    for name, text in (("values", "Open"), ("values-de", "Öffnen"), ("values-fr", "Ouvrir")):
        (tmp_path / "res" / name).mkdir(parents=True)
        (tmp_path / "res" / name / "strings.xml").write_text(resources.format(text))
    (tmp_path / "res/note.txt").write_text("no pairs")
    english = tmp_path / "res/values/strings.xml"
    both = [f"{english},{tmp_path}/res/values-{code}/strings.xml" for code in ("de", "fr")]
    for path in (tmp_path / "res", tmp_path / "res/*/strings.xml"):
        assert find_files(SourceConfig(paths=(path,))) == both
    german = SourceConfig(paths=(tmp_path / "res",), languages=("en", "de"))
    assert find_files(german) == both[:1]
    (chunk,) = read_chunks(both[0], german, 0, skipped=Counter())
    assert (chunk.sources, chunk.targets) == (["Öffnen"], ["Open"])
    assert describe_file(both[0], german).bytes == sum(
        (tmp_path / "res" / name / "strings.xml").stat().st_size for name in ("values", "values-de")
    )
