from __future__ import annotations

import numpy as np
import pytest

from interlingua.mining.texts import ZEROS, Strings, StringsWriter, mapped, mapped_zeros

TEXTS = ["", "Straße", "你好\n", "\ud7ff", "", "a b"]


def test_strings_come_back_one_by_one_and_in_parts(tmp_path):
    with StringsWriter(tmp_path, "some") as writer:
        writer.extend(TEXTS[:2])
        writer.extend([])
        writer.extend(iter(TEXTS[2:]))
    strings = Strings(tmp_path, "some")
    assert list(strings) == TEXTS
    assert [strings[number] for number in range(len(TEXTS))] == TEXTS
    for start in range(len(TEXTS)):
        for stop in range(start, len(TEXTS) + 1):
            assert strings[start:stop] == strings.part(start, stop) == TEXTS[start:stop]
    assert strings.total_bytes == len("".join(TEXTS).encode())


def test_none_at_all(tmp_path):
    with StringsWriter(tmp_path, "none"):
        pass
    assert list(Strings(tmp_path, "none")) == []
    assert mapped(tmp_path / "none.ends", np.dtype(np.int64)).shape == (0,)


@pytest.mark.parametrize("size", [0, 1, ZEROS, 2 * ZEROS + 3])
def test_zeros_have_their_room_on_the_disk(tmp_path, size):
    """Check against files with holes: on a full disk they would kill the process silently."""
    path = tmp_path / "numbers"
    path.write_bytes(b"old" * 1000)
    numbers = mapped_zeros(path, np.dtype(np.int64), size)
    assert numbers.shape == (size,)
    assert not numbers.any()
    assert path.stat().st_size == 8 * size
    assert path.stat().st_blocks * 512 >= 8 * size
    if size:
        numbers[-1] = 7
        assert mapped(path, np.dtype(np.int64))[-1] == 7
