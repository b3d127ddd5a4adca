from __future__ import annotations

import pytest

from interlingua import align, mine, score
from interlingua.errors import ConfigError, DataError
from tests.mining.invented import embed
from tests.tiny import tiny_encoder


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mine(embed, ["a", None], ["b"]), r"source: row 1 .* missing value"),
        (lambda: mine(embed, ["a"], {"text": ["b"]}), "target: .* found a dict"),
        (lambda: align(embed, "a", ["b"]), "source: .* found one string"),
        (lambda: align(embed, ["a"], ["b", float("nan")]), r"target: row 1 .* missing value"),
        (lambda: list(score(embed, [("a", "b"), ("a", None)])), r"target: row 1 .* missing value"),
        (lambda: list(score(embed, [("a", "b", "c")])), "row 0 .* a source"),
        (lambda: list(score(embed, ["ab"])), "row 0 .* a source"),
        (lambda: score(embed, {"a": "b"}), "pairs: .* found a dict"),
    ],
)
def test_what_is_no_text_is_one_error_with_its_row(call, message):
    with pytest.raises((ConfigError, DataError), match=message):
        call()


def test_the_encoder_comes_first_and_may_be_a_folder(word_vocabulary, tmp_path):
    encoder = tiny_encoder(word_vocabulary)
    encoder.save(tmp_path / "m")
    texts = [f"de{number} de{number + 1}" for number in range(6)]
    found = mine(encoder, texts, texts, checks=())
    assert len(found) == 6
    assert mine(tmp_path / "m", texts, texts, checks=()) == found
    for call in (
        lambda: mine(texts, texts, encoder),
        lambda: score(texts, encoder),
        lambda: align(texts, texts, embed),
    ):
        with pytest.raises(ConfigError, match=r"interlingua\.\w+\("):
            call()
