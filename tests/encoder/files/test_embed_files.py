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

from interlingua.encoder.files.embed_files import _RECORD, vector_output
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.progress import SILENT
from interlingua.storage.locks import exclusive
from tests.jobs import embedded
from tests.mining.invented import embed
from tests.progress_records import Recorded
from tests.storage.test_remote import refuses
from tests.storage.test_remote import store as store


def encode(texts, out=None, report=None, show_progress_bar=SILENT):
    """Encode with the signature of encoders."""
    lines = list(texts)
    vectors = embed(lines) if lines else np.zeros((0, 24), np.float32)
    report.texts += len(lines)
    show_progress_bar.advance(len(lines))
    if out is not None:
        Path(out).parent.mkdir(exist_ok=True)
        np.save(out, vectors)
    return vectors


def lines(size, language="de"):
    return [f"{language}{n} {language}{n + 1}" for n in range(size)]


def written(texts):
    return "".join(f"{text}\n" for text in texts).encode()


def run(files, output, *, by=encode, model="m", **options):
    """Return the report of embedding files, and the progress."""
    progress = Recorded()
    names = [str(file) for file in files]
    found = embedded(by, names, str(output), model=model, progress=progress, **options)
    return found, progress.counts


def assert_vectors(path, texts):
    np.testing.assert_array_equal(np.load(path), embed(texts))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def parts(tmp_path):
    for number, size in enumerate((5, 3)):
        (tmp_path / f"part-{number}.txt").write_bytes(written(lines(size)))
    return tmp_path / "part-*.txt"


def test_one_file_to_one(tmp_path, parts):
    found, progress = run([tmp_path / "part-0.txt"], tmp_path / "a.npy")
    assert found[0].startswith(f"{tmp_path}/a.npy: 5 x 24 float32, ")
    assert_vectors(tmp_path / "a.npy", lines(5))
    assert progress == [(0, 5), (5, 5)]
    assert not list(tmp_path.glob("*.json"))


def test_files_that_are_done_are_not_done_again(tmp_path, parts):
    """Fail at the second file, resume, and then change the first file."""
    folder, seen = tmp_path / "v", []

    def fails(texts, **how):
        seen.append(list(texts))
        if len(seen) == 2:
            raise KeyboardInterrupt
        return encode(seen[-1], **how)

    with pytest.raises(KeyboardInterrupt):
        run([parts], folder, by=fails)
    assert names_in(folder) == [_RECORD, "part-0.npy"]
    [summary], _ = run([parts], folder, by=fails)
    assert "3 x 24 float32" in summary
    assert "1 existing files were kept" in summary
    assert [len(texts) for texts in seen] == [5, 3, 3]
    (tmp_path / "part-0.txt").write_bytes(written(lines(6)))
    (folder / "part-1.npy").unlink()
    assert run([parts], folder)[1][-1] == (9, 9)
    assert len(np.load(folder / "part-0.npy")) == 6
    with pytest.raises(ConfigError, match=r"v: .*another model"):
        run([parts], folder, model="other")
    (folder / _RECORD).write_text("{}")
    with pytest.raises(DataError, match=r"embedded\.json: .*choose"):
        run([parts], folder)


def test_from_a_store_to_a_store(tmp_path, store):
    for number, size in enumerate((5, 3)):
        store.pipe(f"/texts/part-{number}.txt", written(lines(size)))
    _, progress = run(["memory://texts/*.txt"], "memory://vectors/")
    # Missing files are estimated to be as long as the existing ones.
    assert progress == [(0, 10), (5, 10), (5, 8), (8, 8)]
    for number, size in enumerate((5, 3)):
        assert_vectors(io.BytesIO(store.cat(f"/vectors/part-{number}.npy")), lines(size))
    assert json.loads(store.cat(f"/vectors/{_RECORD}"))["model"] == "m"
    again, _ = run(
        ["memory://texts/*.txt"], "memory://vectors/", by=lambda *_: pytest.fail("again")
    )
    assert "2 existing files were kept" in again[0]


@pytest.mark.parametrize("output", ["memory://vectors/", "memory://vectors/one.npy"])
def test_a_store_that_takes_nothing_is_found_out_before_the_work(
    tmp_path, store, monkeypatch, output
):
    (tmp_path / "a.txt").write_bytes(written(lines(5)))
    monkeypatch.setattr(type(store), "pipe_file", refuses)
    with pytest.raises(DataError, match="RuntimeError: no credentials; check"):
        run([tmp_path / "a.txt"], output, by=lambda *_: pytest.fail("embeds"))


def test_standard_input(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(written(lines(4)))))
    _, progress = run(["-"], tmp_path / "a.npy")
    assert_vectors(tmp_path / "a.npy", lines(4))
    assert progress == [(0, None), (4, None)]
    for files in (["-", "a.txt"], ["-"]):
        with pytest.raises(ConfigError, match="standard input"):
            vector_output(files, "out/")


def test_standard_input_with_a_bad_line(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"de1\n\xff\nde2\n")))
    run(["-"], tmp_path / "a.npy", on_error="skip")
    assert_vectors(tmp_path / "a.npy", ["de1", "", "de2"])


def test_a_pipe_is_embedded_whole(tmp_path):
    """Count lines of a pipe once only: a second reading would find none."""
    reading, writing = os.pipe()
    os.write(writing, written(lines(5)))
    os.close(writing)
    run([f"/dev/fd/{reading}"], tmp_path / "a.npy")
    os.close(reading)
    assert_vectors(tmp_path / "a.npy", lines(5))


def test_the_text_is_not_written_over_and_must_be_whole(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(written(lines(99)))[:-9])
    output = tmp_path / "a.npy"
    output.write_bytes(written(lines(9)))
    with pytest.raises(ConfigError, match="would be overwritten"):
        run([output], output)
    output.unlink()
    with pytest.raises(DataError, match="incomplete"):
        run([path], output)


def test_two_files_of_one_name_are_refused(tmp_path):
    names = [tmp_path / folder / "a.txt" for folder in ("x", "y")]
    for name in names:
        name.parent.mkdir()
        name.write_text("a\n")
    with pytest.raises(ConfigError, match=r"2 files: .*same name"):
        run(names, tmp_path / "v")


def test_two_runs_do_not_fill_one_folder(tmp_path, parts):
    folder = tmp_path / "v"
    with (
        exclusive(folder, remedy="x"),
        pytest.raises(ConfigError, match=r"v is in use .* --output"),
    ):
        run([parts], folder)
    run([parts], folder)
    assert names_in(folder) == [_RECORD, "part-0.npy", "part-1.npy"]


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "s3://bucket/t.tsv", "t.npz"])
def test_vectors_are_not_written_under_another_formats_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"OUT\.parquet"):
        vector_output(["a.txt"], name)


def test_a_column_of_a_table_gives_a_vector_per_row(tmp_path):
    table, output = tmp_path / "m.csv", tmp_path / "a.npy"
    table.write_text("id,review\n1,de1 de2\n2,\n3,de3 de4\n")
    with pytest.raises(DataError, match="--column"):
        run([table], output)
    with pytest.raises(ConfigError, match="'review'"):
        run(["x.txt"], output, column="review")
    assert not output.exists()
    _, progress = run([table], output, column="review")
    assert_vectors(output, ["de1 de2", "", "de3 de4"])
    assert progress == [(0, 3), (3, 3)]


def test_lines_that_can_not_be_read_become_blank_rows(tmp_path):
    """Keep row i for line i. Lines of a damaged file before the damage are embedded."""
    path, output = tmp_path / "a.txt", tmp_path / "a.npy"
    path.write_bytes(b"de1 de2\nde3 \xff\nde3 de4\n")
    found, _ = run([path], output, on_error="skip")
    assert_vectors(output, ["de1 de2", "", "de3 de4"])
    assert f"{output}.bad-lines.tsv" in found[1]
    assert "a.txt\t2\tnot UTF-8\tde3 \\xff\n" in Path(f"{output}.bad-lines.tsv").read_text()
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8"):
        run([path], tmp_path / "b.npy")
    with pytest.raises(ConfigError, match=r"on_error: .*'ignore'"):
        embedded(embed, ["a.txt"], "b.npy", on_error="ignore")


def test_bad_rows_of_tables_and_damaged_files_in_a_folder(tmp_path):
    (tmp_path / "m.csv").write_text("id,text\n1,de1 de2\n2\n3,de3 de4\n")
    whole = gzip.compress(written(lines(5000)))
    (tmp_path / "n.txt.gz").write_bytes(whole[: len(whole) // 2])
    files = [tmp_path / "m.csv", tmp_path / "n.txt.gz"]
    found, _ = run(files, f"{tmp_path}/out/", on_error="skip")
    assert_vectors(tmp_path / "out" / "m.npy", ["de1 de2", "", "de3 de4"])
    rows = len(np.load(tmp_path / "out" / "n.npy"))
    assert 0 < rows < 5000
    [damaged] = [line for line in found if "n.txt.gz: " in line]
    assert f"kept {rows:,} lines before" in damaged
    assert len((tmp_path / "out" / "bad-lines.tsv").read_text().splitlines()) == 3


def table_of(path):
    return pytest.importorskip("pyarrow.parquet").read_table(path)


class Ahead:
    """Workers that take three windows before they give the first one back."""

    def run(self, function, tasks, *, encodes):
        waiting = []
        for task in tasks:
            waiting.append(task)
            if len(waiting) == 3:
                yield function(*waiting.pop(0))
        yield from (function(*task) for task in waiting)


@pytest.fixture(
    params=[(16_384, None), (4, None), (2, "local")], ids=["whole", "windows", "workers"]
)
def ray(request, monkeypatch):
    """The option ``ray``, with windows of some lines."""
    size, address = request.param
    monkeypatch.setattr("interlingua.encoder.encode.WINDOW_TEXTS", size)
    if address:
        monkeypatch.setattr(
            "interlingua.encoder.files.embed_files.connected",
            lambda address, cores: contextlib.nullcontext(Ahead()),
        )
    return address


def test_parquet_holds_the_lines_of_all_files(tmp_path, parts, ray):
    (tmp_path / "part-2.txt").write_bytes(written([*lines(9), "", "de1"]))
    found, progress = run([parts], tmp_path / "v.parquet", ray=ray)
    expected = [*lines(5), *lines(3), *lines(9), "", "de1"]
    table = table_of(tmp_path / "v.parquet")
    assert table["text"].to_pylist() == expected
    np.testing.assert_array_equal(table["vector"].to_pylist(), embed(expected))
    assert f"{tmp_path}/v.parquet: 19 x 24 float32, " in found[0]
    assert progress[-1] == (19, 19)
    assert not list(tmp_path.glob("*.json"))


def test_a_folder_holds_the_vectors_of_each_file(tmp_path, parts, ray):
    found, progress = run([parts], tmp_path / "v", ray=ray)
    for number, size in enumerate((5, 3)):
        assert_vectors(tmp_path / "v" / f"part-{number}.npy", lines(size))
    assert "2 files, 8 x 24 float32, " in found[0]
    assert progress[-1] == (8, 8)


def test_parquet_of_an_empty_file_has_no_rows(tmp_path):
    (tmp_path / "a.txt").write_text("")
    run([tmp_path / "a.txt"], tmp_path / "v.parquet")
    found = table_of(tmp_path / "v.parquet")
    assert (found.num_rows, found.column_names) == (0, ["text", "vector"])


def test_parquet_names_the_line_that_is_not_finite(tmp_path, parts):
    def broken(texts, **how):
        vectors = encode(texts, **how)
        vectors[[text == "de2 de3" for text in texts]] = np.nan
        return vectors

    with pytest.raises(DataError, match=r"part-0\.txt:3"):
        run([parts], tmp_path / "v.parquet", by=broken)
    assert not (tmp_path / "v.parquet").exists()


def test_parquet_in_a_store(tmp_path, store, parts):
    run([parts], "memory://vectors/v.parquet")
    assert table_of(io.BytesIO(store.cat("/vectors/v.parquet"))).num_rows == 8
