"""experiments/mini/speed.py: models embed the same texts in turns, and a ratio is last."""

from __future__ import annotations

import sys

import pytest

from tests.adapt.invented import small_model


@pytest.fixture(scope="module")
def script(mini_script):
    """The script as a module."""
    return mini_script("speed")


def test_the_ratio_is_of_the_first_model_to_each_other(script, tmp_path, monkeypatch, capsys):
    for name in ("one", "other"):
        small_model(tmp_path / name)
    (tmp_path / "de.txt").write_text("en1 en2\nen3\nen4\n", encoding="utf-8")
    seconds = iter([9.0, 9.0, 0.5, 1.0, 0.5, 4.0, 0.5, 2.0])  # the first turn does not count
    seen = []

    def taken(encoder, texts, prompt, dtype):
        seen.append((len(texts), prompt, dtype))
        return next(seconds)

    monkeypatch.setattr(script, "processor_seconds", taken)
    models = [str(tmp_path / "one"), str(tmp_path / "other")]
    options = ["--prompts", "", "query: ", "--lines", "2", "--repeats", "3"]
    texts = ["--texts", str(tmp_path / "de.txt")]
    monkeypatch.setattr(sys, "argv", ["speed.py", *models, *options, *texts])
    script.main()
    assert seen[:2] == [(2, "", "float32"), (2, "query: ", "float32")]
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[-4] == "4"  # two texts in half a second
    assert lines[-1] == f"{models[0]} / {models[1]}: 4.00"


def test_a_prompt_is_for_each_model_or_none(script, tmp_path, monkeypatch):
    argv = ["speed.py", "one", "other", "--prompts", "", "--texts", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit):
        script.main()
