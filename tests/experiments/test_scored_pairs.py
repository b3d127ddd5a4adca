"""experiments/mini/scored_pairs.py: which pairs of STS benchmark the small model learns from."""

from __future__ import annotations

import sys

import pytest

OPEN = [
    ("5.0", "A plane is taking off.", "An air plane takes off."),
    ("1.0", "A man plays.", "Two dogs run."),
]
CLOSED = [("3.0", "A forum post.", "Another post.")]
TESTED = [("2.0", "Stocks rise in Asia", "Asian stocks fall")]


@pytest.fixture(scope="module")
def script(mini_script):
    """The script as a module."""
    return mini_script("scored_pairs")


@pytest.fixture
def made(script, tmp_path, monkeypatch):
    """The script's output for a small benchmark with one more pair of captions in STS17's test."""
    for name in ("stsb", "sts12_16", "sts17"):
        (tmp_path / name).mkdir()
    headline = (
        "4.0",
        "Stocks rise in Asia",
        "Shares rise in Asia",
    )  # its first sentence is tested in STS benchmark
    caption = ("4.5", "A cat sleeps!", "The cat is asleep.")
    for code in ("en", *script.OTHERS):
        for split, rows in (
            ("train", [*OPEN, *CLOSED, headline, caption]),
            ("dev", TESTED),
            ("test", TESTED),
        ):
            write(
                tmp_path / "stsb" / f"{code}.{split}.tsv", rows, "" if code == "en" else f" {code}"
            )
    write(tmp_path / "sts12_16" / "2014.images.test.tsv", [*OPEN, caption])
    write(tmp_path / "sts12_16" / "2013.headlines.test.tsv", [headline])
    write(tmp_path / "sts17" / "sts17.en-en.tsv", [("0.5", "a cat sleeps", "A horse runs.")])
    monkeypatch.setattr(
        sys, "argv", ["scored_pairs.py", str(tmp_path), "-o", str(tmp_path / "out")]
    )
    script.main()
    return tmp_path / "out"


def write(path, rows, behind=""):
    """Write lines of a score and two sentences."""
    lines = ["\t".join((score, f"{one}{behind}", f"{other}{behind}")) for score, one, other in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_only_open_pairs_that_are_not_tested_are_learned_from(made):
    lines = [
        line.split("\t") for line in (made / "train.tsv").read_text(encoding="utf-8").splitlines()
    ]
    assert len(lines) == 7 * len(OPEN)
    assert {score for score, *_ in lines} == {score for score, *_ in OPEN}
    begun = tuple(text for _, *pair in OPEN for text in pair)
    assert all(text.startswith(begun) for _, *pair in lines for text in pair)


def test_each_pair_is_there_in_english_and_across_languages(made, script):
    lines = [
        line.split("\t")[1:]
        for line in (made / "train.tsv").read_text(encoding="utf-8").splitlines()
    ]
    of_first = [pair for pair in lines if pair[0].startswith(OPEN[0][1])]
    codes = [tuple(text.rpartition(".")[2].strip() or "en" for text in pair) for pair in of_first]
    assert codes.count(("en", "en")) == 1
    assert sum("en" in pair and pair != ("en", "en") for pair in codes) == 3
    assert sum(one == other != "en" for one, other in codes) == 2
    assert {code for pair in codes for code in pair} <= {"en", *script.OTHERS}


def test_translations_and_held_out_sets_are_written_for_prepare(made, script):
    assert sorted(path.stem for path in (made / "pairs").iterdir()) == sorted(
        f"{code}-en" for code in script.OTHERS
    )
    german = (made / "pairs" / "de-en.tsv").read_text(encoding="utf-8").splitlines()
    assert german == [f"{text} de\t{text}" for _, *pair in OPEN for text in pair]
    assert len(list((made / "held_out").iterdir())) == 2 * (1 + len(script.OTHERS))


def test_development_pairs_go_through_the_languages(made, script):
    assert (made / "dev.tsv").read_text(
        encoding="utf-8"
    ) == "2.0\tStocks rise in Asia\tAsian stocks fall de\n"


def test_a_stopped_run_has_no_development_pairs(script, made, monkeypatch):
    """Check the file by which second.py sees that the step is done."""
    (made / "dev.tsv").unlink()

    def stop(*paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(script.shutil, "copy", stop)
    with pytest.raises(KeyboardInterrupt):
        script.main()
    assert not (made / "dev.tsv").exists()
