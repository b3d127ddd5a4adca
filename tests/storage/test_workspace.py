"""Workspaces: resumed, refused, damaged, and a user's own files."""

from __future__ import annotations

import json
import os

import pytest

from interlingua.errors import ConfigError
from interlingua.storage import locks
from interlingua.storage.files import sha256_tree
from interlingua.storage.formats import Format
from interlingua.storage.record import RecordError, write_record
from interlingua.storage.workspace import WORKSPACE_RECORD, open_workspace

JOB = Format("interlingua-job", 2, "start over")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "input.txt").write_text("one")
    return tmp_path / "out"


def opened(place, *, word="x", **options):
    inputs = [place.parent / "input.txt", place.parent / "absent.txt"]
    options = {"settings": {"word": word, "threads": 1}, "inputs": inputs, **options}
    return open_workspace(
        place, JOB, may_change=["threads"], remedy="name another folder", **options
    )


def run(place, log, **options):
    """Run three steps, and record each finished one."""
    with opened(place, **options) as work:
        if not work.is_done("first"):
            log.append("first")
            with work.step("first") as folder:
                (folder / "deep").mkdir()
                (folder / "deep" / "a.txt").write_text("a")
                (folder / "b.txt").write_text("b")
        if work.get("second") is None:
            log.append("second")
            work.put("second", {"size": (1, 2)})
        if not work.is_done("third"):
            log.append("third")
            folder = work.begin("third")
            folder.mkdir(exist_ok=True)
            (folder / "c.txt").write_text(str(work.get("second")["size"]))
            work.finish("third")
        return work.steps


def test_a_finished_step_is_not_done_again(place):
    log: list[str] = []
    assert run(place, log) == ("first", "second", "third")
    assert log == ["first", "second", "third"]
    run(place, log)
    assert len(log) == 3
    assert sorted(path.name for path in place.iterdir()) == ["first", "third", WORKSPACE_RECORD]


@pytest.mark.parametrize("damage", ["cut", "changed", "removed", "folder removed"])
def test_a_damaged_step_is_done_again(place, damage, caplog):
    run(place, [])
    path = place / "first" / "deep" / "a.txt"
    digest = sha256_tree(place)
    {
        "cut": lambda: path.write_text(""),
        "changed": lambda: path.write_text("z"),
        "removed": path.unlink,
        "folder removed": lambda: (path.unlink(), path.parent.rmdir()),
    }[damage]()
    log: list[str] = []
    run(place, log)
    assert log == ["first"]
    assert "a.txt" in caplog.text
    assert sha256_tree(place) == digest


def test_steps_after_one_that_comes_out_otherwise_are_done_again(place):
    run(place, [])
    (place / "first" / "b.txt").write_text("damaged")
    with opened(place) as work:
        assert not work.is_done("first")
        with work.step("first") as folder:
            (folder / "b.txt").write_text("other")
        assert work.steps == ("first",)
    log: list[str] = []
    assert run(place, log) == ("first", "second", "third")
    assert log == ["second", "third"]


def test_other_settings_and_inputs_are_refused(place):
    run(place, [])
    with pytest.raises(ConfigError, match=r"out: .*word.*name another folder"):
        run(place, [], word="y")
    run(place, [], settings={"word": "x", "threads": 2})
    (place.parent / "input.txt").write_text("two")
    with pytest.raises(ConfigError, match=r"input\.txt"):
        run(place, [])


def test_never_begins_anew_and_only_does_not_begin(place):
    with pytest.raises(ConfigError, match="resume"):
        run(place, [], resume="only")
    run(place, [])
    (place / "first" / "mine.txt").write_text("a user's")
    log: list[str] = []
    run(place, log, resume="only")
    assert log == []
    (place / "first" / "mine.txt").rename(place.parent / "mine.txt")
    run(place, log, word="y", resume="never")
    assert log == ["first", "second", "third"]


def test_a_users_files_stay(place):
    run(place, [])
    (place / "first" / "mine.txt").write_text("a user's")
    (place / "mine.txt").write_text("a user's")
    (place / "first" / "b.txt").unlink()
    run(place, [])
    assert (place / "first" / "mine.txt").read_text() == "a user's"
    with pytest.raises(ConfigError, match="first does not belong"):
        run(place, [], resume="never")
    assert (place / "first" / "mine.txt").read_text() == "a user's"
    assert (place / "mine.txt").read_text() == "a user's"


@pytest.mark.parametrize("name", ["first", "third", "notes.txt", WORKSPACE_RECORD])
def test_a_folder_with_other_files_is_refused(place, name):
    place.mkdir()
    (place / name).write_text("a user's")
    with pytest.raises((ConfigError, RecordError), match=r"out.*name another folder"):
        run(place, [])
    assert (place / name).read_text() == "a user's"


def test_a_step_is_not_put_in_the_place_of_a_users_folder(place):
    with opened(place) as work:
        (place / "first").mkdir()
        with pytest.raises(ConfigError, match="first"), work.step("first"):
            pass
        with pytest.raises(ConfigError, match="first"):
            work.begin("first")


def test_an_error_in_a_step_leaves_it_undone(place):
    with opened(place) as work:
        with pytest.raises(KeyError), work.step("first") as folder:
            (folder / "a.txt").write_text("a")
            raise KeyError
        assert not work.is_done("first")
        assert not (place / "first").exists()


def test_another_version_is_refused_in_one_line(place):
    place.mkdir()
    write_record(place / WORKSPACE_RECORD, Format("interlingua-job", 1, ""), {})
    with pytest.raises(RecordError, match=r"job-2.*job-1.*name another folder"):
        run(place, [])


def test_every_damage_of_the_record_is_one_line(place):
    run(place, [])
    path = place / WORKSPACE_RECORD
    content = path.read_bytes()
    for end in range(0, len(content) - 1, 7):
        path.write_bytes(content[:end])
        with pytest.raises(RecordError, match="workspace"):
            run(place, [])
    for wrong in ({}, {"settings": {}, "inputs": {}, "steps": {"../x": {"value": 1}}}):
        write_record(path, JOB, wrong)
        with pytest.raises(RecordError, match="damaged"):
            run(place, [])
    for entry in ([], {"files": []}, {"files": {"a": 1}}, {"files": {"a": ["1", 1]}}, {"x": 1}):
        write_record(path, JOB, {"settings": {}, "inputs": {}, "steps": {"first": entry}})
        with pytest.raises(RecordError, match="first"):
            run(place, [])


def test_two_runs_do_not_work_in_one_folder(place):
    with opened(place), pytest.raises(ConfigError, match="in use"):
        run(place, [])
    assert not (place / locks.LOCK_FILE).exists()


class Killed(BaseException):
    """In the place of SIGKILL."""


def test_a_run_that_ends_at_any_rename_or_sync_ends_with_the_same_files(place, monkeypatch):
    run(place, [])
    whole = sha256_tree(place)
    calls = 0
    real = {name: getattr(os, name) for name in ("fsync", "rename", "replace")}

    def counted(name):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == last:
                raise Killed
            return real[name](*arguments, **options)

        return call

    last = 0
    for name in real:
        monkeypatch.setattr(os, name, counted(name))
    run(place.parent / "counted", [])
    ends = calls
    assert ends > 15
    for last in range(1, ends + 1):
        calls = 0
        other = place.parent / f"killed-{last}"
        with pytest.raises(Killed):
            run(other, [])
        calls = -(10**6)
        run(other, [])
        assert sha256_tree(other) == whole
        assert json.loads((other / WORKSPACE_RECORD).read_text())["steps"].keys() == {
            "first",
            "second",
            "third",
        }


PARTS = {r"part-\d": r"[a-z]\.bin", r"step": r""}


def test_a_step_of_another_key_is_not_done(place):
    with opened(place) as work:
        with work.step("step", key="one") as folder:
            (folder / "a.txt").write_text("a")
        digest = work.digest("step")
        assert work.is_done("step", "one")
        assert not work.is_done("step", "two")
        assert not work.is_done("step")
        with work.step("step", key="two") as folder:
            (folder / "a.txt").write_text("a")
        assert work.key("step") == "two"
        assert work.digest("step") == digest


def test_shards_find_the_steps_of_one_another(place):
    with (
        opened(place, parts=PARTS, shard=(1, 2)) as one,
        opened(place, parts=PARTS, shard=(2, 2)) as two,
    ):
        with one.alone(), one.step("step") as folder:
            (folder / "a.txt").write_text("a")
        assert not two.is_done("step")
        with two.alone():
            assert two.is_done("step")
        with pytest.raises(ConfigError, match="in use"), opened(place, shard=(2, 2)):
            pass


@pytest.mark.parametrize("resume", ["never", "clear"])
def test_parts_go_by_their_names_and_other_files_stay(place, resume):
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    (place / "part-1").mkdir()
    with opened(place, parts=PARTS) as work:
        (place / "part-1" / "a.bin").write_text("ours")
        (place / "part-1" / "thesis.txt").write_text("mine")
        with work.step("step") as folder:
            (folder / "a.txt").write_text("a")
        if resume == "clear":
            work.clear()
    if resume == "never":
        with opened(place, parts=PARTS, resume="never") as work:
            assert work.steps == ()
    left = {path.name for path in place.rglob("*") if path.is_file()}
    assert left - {WORKSPACE_RECORD} == {"notes.txt", "thesis.txt"}


@pytest.mark.parametrize("name", ["part-2/b.bin", "part-3", "step/x"])
def test_parts_of_others_are_refused(place, name):
    (place / name).parent.mkdir(parents=True)
    (place / name).write_text("mine")
    with pytest.raises(ConfigError, match=name.split("/")[0]), opened(place, parts=PARTS):
        pass
    assert not (place / WORKSPACE_RECORD).exists()


@pytest.mark.parametrize("name", ["part-2/b.bin", "part-3"])
def test_links_in_parts_are_refused(place, name):
    with opened(place, parts=PARTS):
        pass
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).symlink_to(place.parent)
    with pytest.raises(ConfigError, match="is a link"), opened(place, parts=PARTS):
        pass
