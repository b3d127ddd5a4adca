from __future__ import annotations

import numpy as np

from interlingua.mining.strings import Strings, StringsWriter, mapped

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
