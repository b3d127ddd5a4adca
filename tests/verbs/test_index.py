"""``interlingua.index`` gives back in numbers what ``interlingua index`` prints."""

from __future__ import annotations

import re

import pytest

import interlingua
from interlingua.errors import ConfigError, InterlinguaError
from interlingua.verbs.index import _READ, Indexed, IndexOptions
from tests.retrieval.test_searcher import files, model  # noqa: F401

pytest.importorskip("lancedb")


def test_an_index_is_built_extended_and_cut(model, files, tmp_path):  # noqa: F811
    folder = tmp_path / "index"
    assert interlingua.index("build", [model, *files[:2]], output=folder) == Indexed(
        folder, added=40
    )
    assert interlingua.index("add", [folder, files[2]]) == Indexed(folder, added=20)
    assert interlingua.index("add", [folder, files[2]]) == Indexed(folder, unchanged=20)
    assert interlingua.index("delete", [folder], where="language = 'deu_Latn'") == Indexed(
        folder, deleted=20
    )


@pytest.mark.parametrize("arguments", ["folder", []])
def test_what_to_index_is_a_list(arguments):
    with pytest.raises(ConfigError, match="FOLDER FILES"):
        interlingua.index("add", arguments)


def test_a_build_names_what_is_no_file(tmp_path):
    (tmp_path / "texts").mkdir()
    for given in (tmp_path / "texts", tmp_path / "texts" / "*.txt"):
        with pytest.raises(InterlinguaError, match=f"^{re.escape(str(given))}: "):
            interlingua.index("build", [given], output=tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("action", _READ)
def test_an_option_is_read_or_refused(action):
    """Try every option of the dataclass with some value."""
    others = {"approximate": True, "documents": True, "chunk_tokens": 64, "chunk_overlap": 8}
    values = {name: others.get(name, "x") for names in _READ.values() for name in names}
    assert set(values) == set(IndexOptions.__dataclass_fields__) - {"action", "arguments"}
    for name, value in values.items():
        if name not in _READ[action]:
            with pytest.raises(ConfigError, match=f"--{name.replace('_', '-')} .*index {action}"):
                interlingua.index(action, ["folder", "file"], **{name: value})
