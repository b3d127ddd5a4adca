from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from interlingua.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    InterlinguaError,
    MissingExtraError,
    TaskError,
    pip_line,
)


@pytest.mark.parametrize("kind", [ConfigError, DataError, CheckpointError, TaskError])
def test_one_base_for_everything_a_user_can_mend(kind):
    assert issubclass(kind, InterlinguaError)


def test_data_error_names_the_place():
    assert str(DataError("empty")) == "empty"
    assert str(DataError("empty", path="a.tsv")) == "a.tsv: empty"
    error = DataError("two columns expected, got 3", path="a.tsv", line=7)
    assert str(error) == "a.tsv:7: two columns expected, got 3"
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, ": pip install 'interlingua[zst]'"),
        (
            '{"archive_info": {}, "url": "file:///x/interlingua.whl"}',
            ": pip install 'interlingua[zst]'",
        ),
        (
            '{"dir_info": {"editable": true}, "url": "file://CLONE"}',
            " in CLONE: pip install -e '.[zst]'",
        ),
        ('{"dir_info": {}, "url": "file://CLONE"}', " in CLONE: pip install '.[zst]'"),
        ('{"dir_info": {}, "url": "file:///not/there"}', ": pip install 'interlingua[zst]'"),
        ("damaged", ": pip install 'interlingua[zst]'"),
    ],
    ids=["index", "wheel file", "editable", "clone", "clone is gone", "damaged record"],
)
def test_missing_extra_prints_the_pip_line(written, expected, tmp_path, monkeypatch):
    clone = tmp_path / "a clone"
    clone.mkdir()
    if written is not None:
        written = written.replace("CLONE", str(clone).replace(" ", "%20"))
    installed = SimpleNamespace(read_text=lambda name: written)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: installed)
    error = MissingExtraError("zstandard", "zst")
    assert str(error).endswith(expected.replace("CLONE", str(clone)))
    assert isinstance(error, ImportError)
    assert pip_line().count("'") == 0


def test_a_source_on_the_python_path_is_a_clone(monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", absent)
    assert pip_line("zst").endswith("pip install -e '.[zst]'")
