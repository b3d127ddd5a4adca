from __future__ import annotations

import os
import shutil

import pytest

from interlingua.errors import ConfigError, DataError, InterlinguaError
from interlingua.mining import vectors
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.pipeline import mine_files
from interlingua.mining.work_folder import at_work
from interlingua.runtime.progress import SILENT
from interlingua.storage.locks import exclusive
from tests.cli.conftest import run as run
from tests.jobs import calibrated, mine_job
from tests.mining.two_sides import sides, write_gold

OWN = ["x", "y", "vectors-x", "vectors-y", "neighbors-k4", "scores", "seen", "made"]


@pytest.fixture
def files(tmp_path):
    return sides(tmp_path)[:2]


def mine(files, work, output):
    job = mine_job(output=output, work=work, memory=2**22)
    job.run(*files, "m", progress=SILENT)
    return output.read_bytes()


def removed(path):
    path.unlink()


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def emptied(path):
    os.truncate(path, 0)


def flipped(path):
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


def flipped_at_the_start(path):
    content = bytearray(path.read_bytes())
    if content:
        content[min(len(content) - 1, 10)] ^= 2
        path.write_bytes(content)


@pytest.mark.parametrize("harm", [removed, cut, emptied, flipped, flipped_at_the_start])
def test_damage_of_any_file_is_an_error_or_made_good(tmp_path, monkeypatch, files, harm):
    """Damage each place of a work folder: one line of error, or the same pairs.

    Never others, never a traceback.
    """
    monkeypatch.setattr(vectors, "PORTION", 20)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # what takes longest here
    whole = tmp_path / "whole"
    expected = mine(files, whole, tmp_path / "expected.tsv")
    names = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file()]
    names = [name for name in names if name.parent.name not in ("y", "vectors-x")]
    assert {str(name) for name in names} >= {
        "x/texts.text",
        "vectors-y/vectors.npy",
        "neighbors-k4/x-0.npz",
        "workspace.json",
    }
    errors = {}
    for number, name in enumerate(names):
        work = tmp_path / str(number)
        shutil.copytree(whole, work)
        harm(work / name)
        try:
            assert mine(files, work, tmp_path / "again.tsv") == expected, name
        except InterlinguaError as error:
            errors[str(name)] = str(error)
    for message in errors.values():
        assert "\n" not in message
        assert str(tmp_path) in message
    assert not {name for name in errors if name.startswith("scores/")}
    if harm is removed:
        assert errors.keys() >= {
            "neighbors-k4/x-0.npz",
            "neighbors-k4/y-0.npz",
            "workspace.json",
        }
        assert "x-0.npz: is missing" in errors["neighbors-k4/x-0.npz"]


@pytest.mark.parametrize(
    "name", ["x/notes.txt", "y/notes", "neighbors-k4/plan", "scores", "made/a", "workspace.json"]
)
def test_a_folder_of_others_is_refused_before_any_work(tmp_path, files, name):
    path = tmp_path / "w" / name
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    with pytest.raises(InterlinguaError, match=f"{name.split('/')[0]}.* --work"):
        mine(files, tmp_path / "w", tmp_path / "p.tsv")
    assert path.read_text() == "precious"
    assert not (tmp_path / "p.tsv").exists()
    assert [one for one in (tmp_path / "w").rglob("*") if one.is_file()] == [path]


@pytest.mark.parametrize("verb", ["mine", "calibrate"])
def test_only_our_files_go_at_the_end(tmp_path, files, verb, caplog):
    """Create OUTPUT.work before, with folders and files of the user."""
    work = tmp_path / "o.tsv.work"
    precious = [work / "notes.txt", work / "z" / "texts.text", work / "y.bak" / "texts.text"]
    for path in precious:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    if verb == "mine":
        mine(files, None, tmp_path / "o.tsv")
    else:
        gold = write_gold(tmp_path / "gold", sides(tmp_path)[2])
        calibrated(*files, output=tmp_path / "o.tsv", gold=gold)
    assert (tmp_path / "o.tsv").is_file()
    assert sorted(path for path in work.rglob("*") if path.is_file()) == sorted(precious)
    assert {path.read_text() for path in precious} == {"precious"}
    assert f"{work} is kept" in caplog.text


def test_nothing_of_ours_is_left(tmp_path, files):
    mine(files, None, tmp_path / "o.tsv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en", "o.tsv"]


def test_files_put_into_our_folders_stay(tmp_path, files):
    with at_work(tmp_path / "w", keep=False) as work:
        mine_files(*files, PairSearch(), work, model="m")
        for name in OWN:
            (tmp_path / "w" / name).mkdir(exist_ok=True)
            (tmp_path / "w" / name / "thesis.txt").write_text("x")
    left = [path for path in (tmp_path / "w").rglob("*") if path.is_file()]
    assert sorted(path.parent.name for path in left) == sorted(OWN)
    assert {path.name for path in left} == {"thesis.txt"}


@pytest.mark.parametrize(
    "name", [*OWN, "vectors-y/vectors.npy", "scores/pairs.bin", "neighbors-k4/x-0.npz"]
)
def test_links_under_our_names_are_not_written_through(tmp_path, files, name):
    elsewhere, work = tmp_path / "elsewhere", tmp_path / "w"
    elsewhere.mkdir()
    (elsewhere / "texts.text").write_text("precious")
    with at_work(work):  # a folder of ours, in which the links were put later
        (work / name).parent.mkdir(exist_ok=True, parents=True)
        (work / name).symlink_to(elsewhere if name in OWN else elsewhere / "texts.text")
    with pytest.raises(ConfigError, match="is a link"):
        mine(files, work, tmp_path / "o.tsv")
    assert [path.name for path in elsewhere.iterdir()] == ["texts.text"]
    assert (elsewhere / "texts.text").read_text() == "precious"


def test_two_jobs_with_one_output_do_not_meet(tmp_path, files):
    lock = exclusive(tmp_path / "o.tsv.work", remedy="x")
    with (
        lock,
        pytest.raises(ConfigError, match=rf"o\.tsv\.work is in use .*{os.getpid()}"),
    ):
        mine(files, None, tmp_path / "o.tsv")
    assert mine(files, None, tmp_path / "o.tsv")


def test_shards_share_a_folder_and_each_is_done_once(tmp_path):
    with at_work(tmp_path, (1, 2)), at_work(tmp_path, (2, 2)):
        for shard in ((1, 2), None):
            with pytest.raises(ConfigError, match="in use by"), at_work(tmp_path, shard):
                pass
    with at_work(tmp_path):
        pass


def test_a_work_folder_is_its_owner_s_alone(tmp_path):
    mask = os.umask(0o022)
    try:
        with at_work(tmp_path / "a" / "work"):
            pass
        (tmp_path / "own").mkdir()
        with at_work(tmp_path / "own"):
            pass
    finally:
        os.umask(mask)
    assert (tmp_path / "a" / "work").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o755  # as the user made it


@pytest.mark.parametrize("keep", [True, False])
def test_a_users_error_leaves_a_work_folder_only_with_results(tmp_path, keep):
    folder = tmp_path / "out.work"
    with pytest.raises(DataError), at_work(folder, keep=keep):
        raise DataError("an option is wrong")
    assert not folder.exists()
    with pytest.raises(DataError), at_work(folder, keep=keep) as work:
        with work.step("x") as place:
            (place / "texts").write_text("a")
        raise DataError("an option is wrong")
    assert (folder / "x/texts").is_file()
    # Of another run, which may resume.
    with pytest.raises(DataError), at_work(folder, keep=keep):
        raise DataError("an option is wrong")
    assert (folder / "x/texts").is_file()


@pytest.mark.parametrize("keep", [True, False])
def test_a_users_empty_folder_stays_empty_after_an_error(tmp_path, keep):
    with pytest.raises(DataError), at_work(tmp_path, keep=keep):
        raise DataError("an option is wrong")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["mine", "calibrate"])
def test_verbs_with_an_empty_input_leave_no_work_folder(tmp_path, verb, run):
    for name in ("a.de", "a.en"):
        (tmp_path / name).write_text("\n", encoding="utf-8")
    extra = f"--gold {tmp_path}/a.de" if verb == "calibrate" else ""
    output = {"mine": "o.tsv", "calibrate": "o.json"}[verb]
    result = run(
        f"{verb} tests.mining.words:embed {tmp_path}/a.de {tmp_path}/a.en --backend function"
        f" -o {tmp_path}/{output} --quiet {extra}"
    )
    assert result.code == 2, result.err
    assert {path.name for path in tmp_path.iterdir()} == {"a.de", "a.en"}
