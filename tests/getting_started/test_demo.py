import numpy as np
import pytest

from interlingua.getting_started.demo import _is_readable, demonstrate

ENGLISH = [
    "the page was not found",
    "your password must be changed now",
    "save",
    "a file that nobody else has got",
]


class ByLength:
    """Encoder with a direction that turns with the number of words."""

    dim = 2

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        angles = np.array([len(text.split()) / 10 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_neighbors_come_from_the_languages_own_messages(tmp_path):
    # Russian keeps the number of words, Greek's second one has that of the first
    (tmp_path / "rus-eng.tsv").write_text(
        f"a b c d e\t{ENGLISH[0]}\na b c d e f\t{ENGLISH[1]}\na\t{ENGLISH[2]}\na b c d e f"
        f" g\t{ENGLISH[3]}\n"
    )
    (tmp_path / "ell-eng.tsv").write_text(f"x x x x x x\t{ENGLISH[0]}\ny y y y y\t{ENGLISH[1]}\n")
    first, second = demonstrate(ByLength(), tmp_path, queries=2)
    assert (first.query, second.query) == (ENGLISH[0], ENGLISH[1])  # those both languages have
    assert [(n.language, n.text, n.right, n.candidates) for n in first.neighbors] == [
        ("Russian", "a b c d e", True, 4),
        ("Greek", "y y y y y", False, 2),
    ]
    assert [n.right for n in second.neighbors] == [True, False]
    assert abs(first.neighbors[0].cosine - 1) < 1e-6


def test_nothing_fit_to_show(tmp_path):
    (tmp_path / "rus-eng.tsv").write_text("да\tyes\nнет\tno\n")
    assert demonstrate(ByLength(), tmp_path) == []


@pytest.mark.parametrize(
    ("message", "readable"),
    [
        ("Please enter a valid address, or none.", True),
        ("Too short to show", False),
        ("The ' ' voucher has expired now", False),
        ("Use the CSRF token of this page", False),
        ("a " * 9 + "(b)", False),
        ("word" * 10_000 + " b c d e!!", False),  # and that at once
    ],
)
def test_demonstrated_sentences_are_plain(message, readable):
    assert _is_readable(message) == readable
