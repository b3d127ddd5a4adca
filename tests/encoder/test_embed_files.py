from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import types
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.embed_files import RECORD, embed_window
from interlingua.errors import ConfigError, DataError
from interlingua.locks import exclusive
from tests.jobs import embed_job
from tests.mining.invented import embed
from tests.test_remote import refuses
from tests.test_remote import store as store


def encode(texts, out=None, report=None, advance=None):
    """As encoders are called."""
    lines = list(texts)
    vectors = embed(lines) if lines else np.zeros((0, 24), np.float32)
    report.texts += len(lines)
    if advance is not None:
        advance(len(lines))
    if out is not None:
        Path(out).parent.mkdir(exist_ok=True)
        np.save(out, vectors)
    return vectors


def lines(size, language="de"):
    return [f"{language}{n} {language}{n + 1}" for n in range(size)]


def written(texts):
    return "".join(f"{text}\n" for text in texts).encode()


@pytest.fixture
def parts(tmp_path):
    for number, size in enumerate((5, 3)):
        (tmp_path / f"part-{number}.txt").write_bytes(written(lines(size)))
    return str(tmp_path / "part-*.txt")


def test_one_file_to_one(tmp_path, parts):
    told = []
    job = embed_job(files=[str(tmp_path / "part-0.txt")], output=str(tmp_path / "a.npy"))
    said = job.run(encode, model="m", progress=lambda *at: told.append(at))
    assert said[0].startswith(f"{tmp_path}/a.npy: 5 x 24 float32, ")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), embed(lines(5)))
    assert told == [(0, 5), (5, 5)]
    assert not list(tmp_path.glob("*.json"))


def test_files_that_are_done_are_not_done_again(tmp_path, parts):
    """The second file fails; then the run goes on; then the first file changes."""
    job, seen = embed_job(files=[parts], output=str(tmp_path / "v")), []

    def fails(texts, **how):
        seen.append(list(texts))
        if len(seen) == 2:
            raise KeyboardInterrupt
        return encode(seen[-1], **how)

    with pytest.raises(KeyboardInterrupt):
        job.run(fails, model="m")
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == [RECORD, "part-0.npy"]
    assert "3 x 24 float32" in (said := job.run(fails, model="m")[0])
    assert "1 files were there" in said
    assert [len(texts) for texts in seen] == [5, 3, 3]
    (tmp_path / "part-0.txt").write_bytes(written(lines(6)))
    (tmp_path / "v" / "part-1.npy").unlink()
    told = []
    job.run(encode, model="m", progress=lambda *at: told.append(at))
    assert told[-1] == (9, 9)
    assert len(np.load(tmp_path / "v" / "part-0.npy")) == 6
    with pytest.raises(ConfigError, match="v holds vectors"):
        job.run(encode, model="other")
    (tmp_path / "v" / RECORD).write_text("{}")
    with pytest.raises(DataError, match="can't be read; choose"):
        job.run(encode, model="m")


def test_from_a_store_to_a_store(tmp_path, store):
    for number, size in enumerate((5, 3)):
        store.pipe(f"/texts/part-{number}.txt", written(lines(size)))
    told = []
    job = embed_job(files=["memory://texts/*.txt"], output="memory://vectors/")
    job.run(encode, model="m", progress=lambda *at: told.append(at))
    assert told == [
        (0, 10),
        (5, 10),
        (5, 8),
        (8, 8),
    ]  # what is not here yet is taken for as long as what is
    for number, size in enumerate((5, 3)):
        found = np.load(io.BytesIO(store.cat(f"/vectors/part-{number}.npy")))
        np.testing.assert_array_equal(found, embed(lines(size)))
    assert json.loads(store.cat(f"/vectors/{RECORD}"))["model"] == "m"
    assert "2 files were there" in job.run(lambda *_: pytest.fail("embeds again"), model="m")[0]


@pytest.mark.parametrize("output", ["memory://vectors/", "memory://vectors/one.npy"])
def test_a_store_that_takes_nothing_is_found_out_before_the_work(
    tmp_path, store, monkeypatch, output
):
    (tmp_path / "a.txt").write_bytes(written(lines(5)))
    monkeypatch.setattr(type(store), "pipe_file", refuses)
    with pytest.raises(DataError, match="RuntimeError: no credentials; check"):
        embed_job(files=[str(tmp_path / "a.txt")], output=output).run(
            lambda *_: pytest.fail("embeds"), model="m"
        )


def test_standard_input(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(written(lines(4)))))
    told = []
    job = embed_job(files=["-"], output=str(tmp_path / "a.npy"))
    job.run(encode, model="m", progress=lambda *at: told.append(at))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), embed(lines(4)))
    assert told == [(4, None)]
    for files, output in ((["-", "a.txt"], "out/"), (["-"], "out/")):
        with pytest.raises(ConfigError, match="standard input"):
            embed_job(files=files, output=output)


def test_a_pipe_is_embedded_whole(tmp_path):
    """Its lines were counted first, which left none to embed: no rows, and no error."""
    reading, writing = os.pipe()
    os.write(writing, written(lines(5)))
    os.close(writing)
    embed_job(files=[f"/dev/fd/{reading}"], output=str(tmp_path / "a.npy")).run(encode, model="m")
    os.close(reading)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), embed(lines(5)))


def test_the_text_is_not_written_over_and_must_be_whole(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(written(lines(99)))[:-9])
    (tmp_path / "a.npy").write_bytes(written(lines(9)))
    with pytest.raises(ConfigError, match="would be lost"):
        embed_job(files=[str(tmp_path / "a.npy")], output=str(tmp_path / "a.npy")).run(
            encode, model="m"
        )
    (tmp_path / "a.npy").unlink()
    with pytest.raises(DataError, match="cut short"):
        embed_job(files=[str(path)], output=str(tmp_path / "a.npy")).run(encode, model="m")


def test_two_files_of_one_name_are_refused(tmp_path):
    names = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        names.append(str(tmp_path / folder / "a.txt"))
        Path(names[-1]).write_text("a\n")
    with pytest.raises(ConfigError, match=r"2 files .*same name"):
        embed_job(files=names, output=str(tmp_path / "v")).run(encode, model="m")


def test_a_window_is_a_task():
    name, vectors, report = embed_window(encode, "a.txt", lines(3))
    assert (name, vectors.shape, report.texts) == ("a.txt", (3, 24), 3)


def test_two_runs_do_not_fill_one_folder(tmp_path, parts):
    job = embed_job(files=[parts], output=str(tmp_path / "v"))
    with (
        exclusive(tmp_path / "v", remedy="x"),
        pytest.raises(ConfigError, match=r"v is in use .* --output"),
    ):
        job.run(encode, model="m")
    job.run(encode, model="m")
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == [
        RECORD,
        "part-0.npy",
        "part-1.npy",
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "s3://bucket/t.tsv", "t.npz"])
def test_vectors_are_not_written_under_another_formats_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"OUT\.parquet"):
        embed_job(files=["a.txt"], output=name)


def test_a_column_of_a_table_gives_a_vector_per_row(tmp_path):
    (tmp_path / "m.csv").write_text("id,review\n1,de1 de2\n2,\n3,de3 de4\n")
    told = []
    job = embed_job(
        files=[str(tmp_path / "m.csv")], output=str(tmp_path / "a.npy"), column="review"
    )
    job.run(encode, model="m", progress=lambda *at: told.append(at))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), embed(["de1 de2", "", "de3 de4"]))
    assert told == [(0, 3), (3, 3)]


def test_lines_that_can_not_be_read_become_blank_rows(tmp_path):
    """Row i stays line i; of a damaged file the lines before the damage are embedded."""
    (tmp_path / "a.txt").write_bytes(b"de1 de2\nde3 \xff\nde3 de4\n")
    job = embed_job(
        files=[str(tmp_path / "a.txt")], output=str(tmp_path / "a.npy"), on_error="skip"
    )
    said = job.run(encode, model="m")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), embed(["de1 de2", "", "de3 de4"]))
    assert f"{tmp_path}/a.npy.bad-lines.tsv" in said[1]
    assert "a.txt\t2\tnot UTF-8\tde3 \\xff\n" in (tmp_path / "a.npy.bad-lines.tsv").read_text()
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8"):
        embed_job(files=[str(tmp_path / "a.txt")], output=str(tmp_path / "b.npy")).run(
            encode, model="m"
        )
    with pytest.raises(ConfigError, match="on_error is 'ignore'"):
        embed_job(files=["a.txt"], output="b.npy", on_error="ignore")


def test_bad_rows_of_tables_and_damaged_files_in_a_folder(tmp_path):
    (tmp_path / "m.csv").write_text("id,text\n1,de1 de2\n2\n3,de3 de4\n")
    whole = gzip.compress(written(lines(5000)))
    (tmp_path / "n.txt.gz").write_bytes(whole[: len(whole) // 2])
    files = [str(tmp_path / "m.csv"), str(tmp_path / "n.txt.gz")]
    said = embed_job(files=files, output=f"{tmp_path}/out/", on_error="skip").run(encode, model="m")
    np.testing.assert_array_equal(
        np.load(tmp_path / "out" / "m.npy"), embed(["de1 de2", "", "de3 de4"])
    )
    rows = len(np.load(tmp_path / "out" / "n.npy"))
    assert 0 < rows < 5000
    assert any(
        "n.txt.gz: " in line and f"kept: {rows:,} lines before that" in line for line in said
    )
    assert len((tmp_path / "out" / "bad-lines.tsv").read_text().splitlines()) == 3


def test_standard_input_with_a_bad_line(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"de1\n\xff\nde2\n")))
    embed_job(files=["-"], output=str(tmp_path / "a.npy"), on_error="skip").run(encode, model="m")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), embed(["de1", "", "de2"]))


def test_a_table_without_a_known_column_is_refused(tmp_path):
    (tmp_path / "m.csv").write_text("id,review\n1,de1 de2\n")
    with pytest.raises(DataError, match="--column"):
        embed_job(files=[str(tmp_path / "m.csv")], output=str(tmp_path / "a.npy")).run(
            encode, model="m"
        )
    with pytest.raises(ConfigError, match="'review'"):
        embed_job(files=["x.txt"], output=str(tmp_path / "a.npy"), column="review").run(
            encode, model="m"
        )
    assert not (tmp_path / "a.npy").exists()


def table_of(path):
    return pytest.importorskip("pyarrow.parquet").read_table(path)


def test_parquet_holds_the_lines_of_all_files(tmp_path, parts):
    job = embed_job(files=[parts], output=str(tmp_path / "v.parquet"))
    at = []
    said = job.run(encode, model="m", progress=lambda *done: at.append(done))
    found = table_of(tmp_path / "v.parquet")
    assert found["text"].to_pylist() == lines(5) + lines(3)
    np.testing.assert_array_equal(found["vector"].to_pylist(), embed(lines(5) + lines(3)))
    assert f"{tmp_path}/v.parquet: 8 x 24 float32, " in said[0]
    assert at[-1] == (8, 8)
    assert not list(tmp_path.glob("*.json"))


def test_parquet_from_windows_has_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("interlingua.encoder.encode.WINDOW_TEXTS", 4)
    (tmp_path / "a.txt").write_bytes(written([*lines(9), "", "de1"]))
    embed_job(files=[str(tmp_path / "a.txt")], output=str(tmp_path / "v.parquet")).run(
        encode, model="m"
    )
    found = table_of(tmp_path / "v.parquet")
    assert found["text"].to_pylist() == [*lines(9), "", "de1"]
    np.testing.assert_array_equal(found["vector"].to_pylist(), embed([*lines(9), "", "de1"]))


def test_parquet_by_workers_keeps_the_order(tmp_path, parts, monkeypatch):
    """The workers take three windows ahead before they give the first one back."""

    class Ahead:
        def run(self, function, tasks, *, encodes):
            waiting = []
            for task in tasks:
                waiting.append(task)
                if len(waiting) == 3:
                    yield function(*waiting.pop(0))
            yield from (function(*task) for task in waiting)

    monkeypatch.setattr("interlingua.encoder.encode.WINDOW_TEXTS", 2)
    monkeypatch.setattr(
        "interlingua.encoder.embed_files.connected",
        lambda address, cores: contextlib.nullcontext(Ahead()),
    )
    embed_job(files=[parts], output=str(tmp_path / "v.parquet"), ray="local").run(encode, model="m")
    found = table_of(tmp_path / "v.parquet")
    assert found["text"].to_pylist() == lines(5) + lines(3)
    np.testing.assert_array_equal(found["vector"].to_pylist(), embed(lines(5) + lines(3)))


def test_parquet_of_an_empty_file_has_no_rows(tmp_path):
    (tmp_path / "a.txt").write_text("")
    embed_job(files=[str(tmp_path / "a.txt")], output=str(tmp_path / "v.parquet")).run(
        encode, model="m"
    )
    found = table_of(tmp_path / "v.parquet")
    assert (found.num_rows, found.column_names) == (0, ["text", "vector"])


def test_parquet_names_the_line_that_is_not_finite(tmp_path, parts):
    def broken(texts, **how):
        vectors = encode(texts, **how)
        vectors[[text == "de2 de3" for text in texts]] = np.nan
        return vectors

    with pytest.raises(DataError, match=r"part-0\.txt:3"):
        embed_job(files=[parts], output=str(tmp_path / "v.parquet")).run(broken, model="m")
    assert not (tmp_path / "v.parquet").exists()


def test_parquet_in_a_store(tmp_path, store, parts):
    embed_job(files=[parts], output="memory://vectors/v.parquet").run(encode, model="m")
    assert table_of(io.BytesIO(store.cat("/vectors/v.parquet"))).num_rows == 8
