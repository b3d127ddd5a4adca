from __future__ import annotations

import sys

import pytest

from interlingua.config.registry import OWN_MODELS
from interlingua.errors import CheckpointError
from interlingua.storage.locate import best_of_run, hub_name, installed_model, locate
from interlingua.vocabulary.vocabulary import Vocabulary


def run_folder(path, *models):
    path.mkdir()
    (path / "config.toml").write_text("")
    for name in models:
        (path / name).mkdir()
        (path / name / "config.json").write_text("{}")
    return path


def test_of_a_run_the_best_model_is_taken_else_the_last(tmp_path):
    both = run_folder(tmp_path / "both", "best", "model")
    last = run_folder(tmp_path / "last", "model")
    assert locate(both) == both / "best"
    assert locate(last) == last / "model"
    assert best_of_run(both / "model") == both / "model"
    assert best_of_run("hf:owner/name") == "hf:owner/name"


def test_a_run_without_a_model_says_so(tmp_path):
    with pytest.raises(CheckpointError, match="no model yet"):
        locate(run_folder(tmp_path / "run"))


def test_locate_asks_the_hub_only_for_names(monkeypatch, tmp_path):
    asked = []

    def download(name, **_):
        asked.append(name)
        if name == "owner/model":
            return str(tmp_path)
        raise OSError(
            "no\nconnection" if name == "owner/other" else f"no connection.\n{'more ' * 50}"
        )

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert locate(tmp_path) == tmp_path
    assert locate("hf:owner/model") == tmp_path
    with pytest.raises(CheckpointError, match=r"hf:owner/other: .*OSError: no connection"):
        locate("hf:owner/other")
    with pytest.raises(CheckpointError, match=r"\(OSError: no connection\); "):
        locate("hf:owner/another")
    for path in (tmp_path / "absent", "./absent", "runs/a/model", "../absent", "a b"):
        with pytest.raises(CheckpointError, match=r"not found; check the path$"):
            locate(path)
    for path in ("owner/model", "model"):
        with pytest.raises(
            CheckpointError, match=f"use hf:{path if '/' in path else f'owner/{path}'}$"
        ):
            locate(path)
    for name in ("../../etc", "a/b/c", "", "a b", "a/../b", "a\n"):
        with pytest.raises(CheckpointError, match="invalid model"):
            locate(f"hf:{name}")
    assert asked == ["owner/model", "owner/other", "owner/another"]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with an entry point for the model ``small``."""
    (tmp_path / "site" / "small_package" / "files").mkdir(parents=True)
    code = "from pathlib import Path\n\ndef folder():\n    return Path(__file__).parent / 'files'\n"
    (tmp_path / "site" / "small_package" / "__init__.py").write_text(code)
    described = tmp_path / "site" / "small_package-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: small-package\nVersion: 1.0\n"
    )
    (described / "entry_points.txt").write_text(
        "[interlingua.models]\nsmall = small_package:folder\n"
    )
    monkeypatch.delitem(sys.modules, "small_package", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "site" / "small_package" / "files"


def test_an_installed_model_is_found_by_its_name(package, tmp_path):
    assert locate("small") == package
    assert installed_model("other") is None
    assert installed_model("sm/all") is None
    (tmp_path / "small").mkdir()
    assert locate("small").resolve() == tmp_path / "small"


def test_the_vocabulary_of_an_installed_model_is_found_by_its_name(package, plain_vocabulary):
    plain_vocabulary.save(package)
    assert Vocabulary.of_model("small").digest() == plain_vocabulary.digest()


def test_a_folder_before_an_installed_model_is_warned_of_once(package, tmp_path, caplog):
    for name in ("small", "other"):
        (tmp_path / name).mkdir()
    for path in ("small", "small", "other", tmp_path / "small"):
        locate(path)
    [record] = caplog.records
    assert str(tmp_path / "small") in record.getMessage()
    assert "small_package" in record.getMessage()


@pytest.mark.parametrize("name", OWN_MODELS)
def test_a_model_of_ours_that_is_not_installed_names_its_folder(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("interlingua.config.registry.installed", lambda group: [])
    with pytest.raises(CheckpointError, match=f"pip install ./models/{name}"):
        locate(name)


def test_an_installed_model_without_its_folder_is_refused(package):
    package.rmdir()
    with pytest.raises(CheckpointError, match="small_package"):
        locate("small")


def test_a_package_that_can_t_unpack_its_model_is_one_line(package):
    code = "def folder():\n    raise OSError('small: no room to unpack the model')\n"
    (package.parent / "__init__.py").write_text(code)
    with pytest.raises(CheckpointError, match=r"^small: no room"):
        locate("small")


def test_only_the_prefix_makes_a_name_of_the_hub():
    assert hub_name("hf:owner/name") == "owner/name"
    paths = ("owner/name", "./hf:owner", "HF:owner/name", "")
    assert {hub_name(path) for path in paths} == {None}
