from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from interlingua.config.options import declared, listed
from interlingua.config.registry import BACKENDS, CHECKS, DEFAULT_MODEL
from interlingua.errors import CheckpointError
from interlingua.verbs.evaluate import MeasuredModelOptions
from interlingua.verbs.mine import MineOptions
from interlingua.verbs.parts.shared_options import ModelOptions, as_path, join_names, overridden
from interlingua.verbs.score import ScoreOptions, score


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a, b,,", ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        ("", []),
        ((), []),
        (None, None),
    ],
)
def test_names_come_with_commas_or_as_a_list(names, expected):
    assert listed(names) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("length=2,hub", "length=2,hub"),
        ({"length": 2.5, "hub": None}, "length=2.5,hub"),
        (["a", "b"], "a,b"),
        ((), ""),
    ],
)
def test_limits_come_as_text_or_as_a_mapping(names, expected):
    assert join_names(names) == expected


def test_overrides_leave_the_tables_of_any_kind_as_they_are():
    given = MappingProxyType({"data": MappingProxyType({"corpus": "a", "max_tokens": 8})})
    assert overridden(given, ["data.corpus=b"]) == {"data": {"corpus": "b", "max_tokens": 8}}
    assert given["data"]["corpus"] == "a"


def test_a_path_may_be_a_text():
    assert as_path("a/b") == Path("a/b")
    assert as_path(None) is None


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.de.txt"
    path.write_text("Guten Tag\n")
    return path


def test_a_model_of_none_is_the_default_one():
    assert ModelOptions(None).model == DEFAULT_MODEL


def test_before_a_file_the_model_may_be_left_out(text, tmp_path):
    for first in (None, "-", text, str(text)):
        assert ModelOptions.left_out(first, {}) == DEFAULT_MODEL
        assert ModelOptions.left_out(first, {"backend": "interlingua"}) == DEFAULT_MODEL
    for first in (
        "mini",
        "hf:owner/name",
        tmp_path,
        str(tmp_path / "absent"),
        np.zeros((2, 2)),
        len,
    ):
        assert ModelOptions.left_out(first, {}) is None


def test_before_texts_in_memory_the_model_may_be_left_out():
    texts = ["Guten Tag"]
    for first in (texts, tuple(texts), (text for text in texts), np.array(texts)):
        assert ModelOptions.left_out(first, {}) == DEFAULT_MODEL
        assert ModelOptions.left_out(first, {"model": "mini"}) is None


def test_before_files_by_another_name_the_model_may_be_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("news.de-en.de", "news.de-en.en", "part-1.gz"):
        (tmp_path / name).write_text("Guten Tag\n")
    missing = ("absent-*.gz", "absent.txt", "absent.tsv.zst")  # named as files are
    there = ("news.de-en", "news.de-en.de,news.de-en.en", "part-*.gz", "s3://bucket/news.tsv")
    for first in (*there, *missing):
        assert ModelOptions.left_out(first, {}) == DEFAULT_MODEL
    (tmp_path / "news.de-en").mkdir()
    for first in ("news.de-en", "news", "mini"):
        assert ModelOptions.left_out(first, {}) is None


def test_a_backend_of_another_kind_reads_its_own_files(text):
    assert ModelOptions.left_out(text, {"backend": "package.module:Class"}) is None
    assert ModelOptions.left_out(text, {"model": "m"}) is None


def test_a_function_takes_the_default_model_for_none_and_before_a_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("interlingua.config.registry.installed", lambda group: [])
    bitext = tmp_path / "a.de-en.tsv"
    bitext.write_text("Guten Tag\tGood day\n")
    for arguments in ([bitext], [str(bitext)], [None, bitext], [None, [("Guten Tag", "Good day")]]):
        with pytest.raises(CheckpointError, match=r"^mini: "):
            list(score(*arguments))
    with pytest.raises(CheckpointError, match=r"^mini: "):
        list(score(bitext=bitext))


@pytest.mark.parametrize(
    ("options", "name", "registry"),
    [
        (ModelOptions, "backend", BACKENDS),
        (MeasuredModelOptions, "backend", BACKENDS),
        (MineOptions, "checks", CHECKS),
        (ScoreOptions, "checks", CHECKS),
    ],
)
def test_help_names_every_built_in_choice(options, name, registry):
    [text] = [declaration.help for field, declaration in declared(options) if field.name == name]
    assert ", ".join(registry) in text
