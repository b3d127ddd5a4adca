from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.speed_gain import Against, Found, against


class Numbers:
    """Encoder that embeds the number in a text as a point on a circle.

    ``blind`` numbers all lie at one place.
    """

    dim = 2

    def __init__(self, blind=()):
        self.blind, self.asked = blind, []

    def encode(self, texts, *, prompt=None, language=None):
        self.asked.append((prompt, language, len(texts)))
        numbers = [
            0 if int(text.split()[-1]) in self.blind else int(text.split()[-1]) for text in texts
        ]
        return np.array([[np.cos(n / 10), np.sin(n / 10)] for n in numbers], dtype=np.float32)


@pytest.fixture
def folder(tmp_path):
    for language, count in (("deu", 20), ("rus", 10)):
        lines = "".join(f"{language} {n}\teng {n}\n" for n in range(count))
        (tmp_path / f"{language}-eng.tsv").write_text(lines, encoding="utf-8")
    return tmp_path


def test_shares_found_by_hand(folder):
    slow, fast = Numbers(), Numbers(blind=(1, 2))
    found = against(slow, fast, folder, prompt="query").found
    # of 20, numbers 1 and 2 look like 0, the first of which every one of the three finds
    assert found["deu-eng"] == Found(20, 1.0, 18 / 20)
    assert found["rus-eng"] == Found(10, 1.0, 8 / 10)
    assert slow.asked[:2] == [("query", "deu_Latn", 20), ("query", "eng_Latn", 20)]
    assert {prompt for prompt, *_ in fast.asked} == {None}


def test_some_languages_and_some_pairs(folder):
    slow = Numbers()
    compared = against(slow, Numbers(), folder, languages=["rus"], max_pairs=4)
    assert list(compared.found) == ["rus-eng"]
    assert compared.texts == 8
    assert {count for *_, count in slow.asked} == {4}
    with pytest.raises(DataError, match=r"no <a>-<b>\.tsv files"):
        against(slow, Numbers(), folder, languages=["swh"])


def test_speed_and_loss_are_ratios_of_what_was_measured():
    found = {"deu-eng": Found(20, 1.0, 0.8), "rus-eng": Found(10, 0.9, 0.6)}
    compared = Against(found=found, texts=60, slow_seconds=3.0, fast_seconds=0.02)
    assert compared.speed == pytest.approx(150)
    assert (compared.slow, compared.fast) == (pytest.approx(0.95), pytest.approx(0.7))
    lines = list(compared.lines())
    assert lines[1].split() == ["deu-eng", "20", "100.0", "80.0"]
    assert lines[-2].split() == ["mean", "95.0", "70.0"]
    assert lines[-1] == (
        "150 times as many texts per second: 3,000 and 20 per second on one core; 25.0 points"
        " of P@1 lost"
    )
