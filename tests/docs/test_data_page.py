"""docs/data.md: how the sets are downloaded in a clone and without one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.get_data import SERVER, SETS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
WHO = ["-c", "user.name=a", "-c", "user.email=a@b"]


def commands_without_the_clone():
    [block] = re.findall(r"^```sh\n(git clone .*?)^```", PAGE, re.M | re.S)
    return block


def test_the_commands_name_the_set_of_the_tool():
    block = commands_without_the_clone()
    one = SETS["tatoeba_laser"]
    assert f"{SERVER}/{one.repository} " in block
    assert f"checkout {one.revision} -- {one.folder}\n" in block
    assert '/tatoeba_laser"' in block


def test_the_commands_get_the_folder_of_a_set(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    one = SETS["tatoeba_laser"]
    origin = tmp_path / "origin"
    (origin / one.folder).mkdir(parents=True)
    (origin / one.folder / "tatoeba.deu-eng.deu").write_text("Hallo\n", encoding="utf-8")
    environment = {**os.environ, **GIT, "INTERLINGUA_DATA": str(tmp_path / "data")}
    for words in (["init", "-q"], ["add", "."], [*WHO, "commit", "-q", "-m", "set"]):
        subprocess.run(["git", *words], cwd=origin, env=environment, check=True)
    (tmp_path / "data").mkdir()
    block = commands_without_the_clone().replace(one.revision, "HEAD")
    block = block.replace(f"{SERVER}/{one.repository}", origin.as_uri())
    subprocess.run(["sh", "-e", "-c", block], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "data/tatoeba_laser/tatoeba.deu-eng.deu").is_file()


def test_every_script_of_the_page_is_in_the_source_distribution():
    root = Path(__file__).resolve().parents[2]
    for name in re.findall(r"python (tools/\w+\.py)", PAGE):
        assert (root / name).is_file(), name
    assert "/tools" not in (root / "pyproject.toml").read_text(encoding="utf-8")
