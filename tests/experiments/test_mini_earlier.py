"""experiments/mini/earlier.py: the weights of an earlier commit as a stock model."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file


@pytest.fixture(scope="module")
def script(mini_script):
    return mini_script("earlier")


@pytest.fixture
def history(script, tmp_path):
    """A repository with two editions of a model, and their matrices."""
    from interlingua_mini.packing import pack
    from interlingua_mini.unpacking import DIGEST, PACKED_WEIGHTS

    repository = tmp_path / "repository"
    folder = repository / script.PACKED
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "1_Pooling" / "config.json").write_text("{}", "utf-8")
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    editions = []
    for edition in (1.0, 2.0):
        matrix = np.full((4, 32), edition, np.float32)
        save_file(pack({"layer": matrix}, four_bits=""), folder / PACKED_WEIGHTS)
        (folder / DIGEST).write_text(str(edition), "ascii")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", str(edition)], check=True)
        editions.append(matrix)
    return repository, editions


@pytest.mark.parametrize(("stage", "edition"), [("retrieval", 0), ("second", 1)])
def test_weights_before_a_stage_are_a_stock_model(
    script, history, tmp_path, monkeypatch, stage, edition
):
    repository, editions = history
    monkeypatch.setattr(
        script,
        "EDITIONS",
        {"retrieval": script.Edition("HEAD~1", "1.0"), "second": script.Edition("HEAD", "2.0")},
    )
    out = tmp_path / "models" / "stock"
    script.main([stage, "--repository", str(repository), "-o", str(out)])
    written = load_file(out / "model.safetensors")["layer"]
    np.testing.assert_allclose(written, editions[edition], rtol=1e-2)
    assert sorted(path.name for path in out.iterdir()) == ["1_Pooling", "model.safetensors"]
    assert [path.name for path in out.parent.iterdir()] == ["stock"]
    with pytest.raises(SystemExit, match="exists"):
        script.main([stage, "--repository", str(repository), "-o", str(out)])


def test_other_weights_than_expected_are_refused(script, history, tmp_path, monkeypatch):
    repository, _ = history
    monkeypatch.setattr(script, "EDITIONS", {"second": script.Edition("HEAD", "1.0")})
    with pytest.raises(SystemExit, match=r"HEAD has the weights 2\.0, not 1\.0"):
        script.main(["second", "--repository", str(repository), "-o", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("stage", ["retrieval", "second"])
def test_the_history_has_the_editions(script, stage):
    edition = script.EDITIONS[stage]
    place = f"{edition.commit}:{script.PACKED}/packed.sha256"
    command = ["git", "-C", str(script.ROOT), "show", place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("a clone without its whole history")
    assert done.stdout.startswith(edition.digest)


def test_a_clone_without_the_commit_is_one_line(script, history, tmp_path):
    repository, _ = history
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match=r"325a5213.*git fetch --unshallow") as stop:
        script.main(["second", "--repository", str(repository), "-o", str(out)])
    assert "\n" not in str(stop.value.code)
    assert not out.exists()
