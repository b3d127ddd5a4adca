"""Banks of teacher vectors: what is written is found again, by the sentence's key."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from interlingua.errors import ConfigError, DataError
from interlingua.methods.teachers.teacher_bank import (
    BankRecord,
    TeacherBank,
    read_bank_record,
    write_bank,
)

KEYS = np.asarray([-7, 2, 5, 9, -3, 4], dtype=np.int64)
GROUPS = np.asarray([0, 1, 0, 3, -1, -1], dtype=np.int64)
VECTORS = np.arange(12, dtype=np.float32).reshape(6, 2) + 1


def record(**changes):
    values = {
        "digest": "d",
        "negatives": 4,
        "sentences": 6,
        "largest_group": 2,
        "teachers": ("a",),
        "widths": (2,),
    }
    return BankRecord(**{**values, "explained_variance": None, "cpu_seconds": 1.5, **changes})


@pytest.fixture
def path(tmp_path):
    write_bank(tmp_path / "bank", record(), KEYS, GROUPS, [VECTORS[:4], VECTORS[4:]])
    return tmp_path / "bank"


def test_vectors_are_found_by_key(path):
    bank = TeacherBank(path)
    assert bank.vectors(torch.tensor([9, -3, -7])).tolist() == [[7, 8], [9, 10], [1, 2]]
    assert bank.dim == 2
    assert read_bank_record(path) == record()


def test_vectors_stay_on_the_disk(path):
    assert isinstance(TeacherBank(path)._vectors, np.memmap)


def test_groups_are_those_of_negatives_only(path):
    assert TeacherBank(path).groups(torch.tensor([2, 4, 5, 1000])).tolist() == [1, -1, 0, -1]


def test_a_sentence_that_is_not_there_is_an_error(path):
    bank = TeacherBank(path)
    assert bank.rows(torch.tensor([3, 5])).tolist() == [-1, 2]
    with pytest.raises(DataError, match="1 of 2 sentences"):
        bank.vectors(torch.tensor([3, 5]))


def test_a_whole_bank_is_every_step_s_window(path):
    bank = TeacherBank(path, size=4)
    window = bank.window(0, torch.device("cpu"))
    assert window.keys.tolist() == KEYS[:4].tolist()
    assert window.groups.tolist() == GROUPS[:4].tolist()
    torch.testing.assert_close(window.vectors.norm(dim=1), torch.ones(4))
    assert bank.window(10_000, torch.device("cpu")) is window


def test_windows_depend_on_seed_and_step_alone(path):
    def keys(bank, step):
        return bank.window(step, torch.device("cpu")).keys.tolist()

    bank = TeacherBank(path, size=2, every=3, seed=1)
    seen = [keys(bank, step) for step in range(30)]
    again = TeacherBank(path, size=2, every=3, seed=1)
    assert [keys(again, step) for step in reversed(range(30))] == seen[::-1]
    assert all(seen[step] == seen[step - step % 3] for step in range(30))
    assert len({tuple(window) for window in seen}) > 1
    other = TeacherBank(path, size=2, every=3, seed=2)
    assert [keys(other, step) for step in range(30)] != seen
    assert all(len(set(window)) == 2 and set(window) <= set(KEYS[:4].tolist()) for window in seen)


def test_a_copy_of_an_objective_shares_the_files(path):
    bank = TeacherBank(path)
    assert copy.deepcopy(bank) is bank


def test_no_bank_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no bank"):
        TeacherBank(tmp_path)
    assert read_bank_record(tmp_path) is None


def test_files_of_different_lengths_are_an_error(path):
    np.save(path / "keys.npy", KEYS[:5])
    with pytest.raises(DataError, match="different lengths"):
        TeacherBank(path)


def test_a_bank_is_compared_with_its_digests_before_it_is_used(path, caplog):
    assert read_bank_record(path, verify=True) == record()
    content = bytearray((path / "vectors.npy").read_bytes())
    content[-1] ^= 1
    (path / "vectors.npy").write_bytes(content)
    assert read_bank_record(path, verify=True) is None
    assert "vectors.npy was truncated or changed" in caplog.text


def test_only_a_bank_is_replaced(path, tmp_path):
    write_bank(path, record(digest="e"), KEYS, GROUPS, [VECTORS])
    assert read_bank_record(path).digest == "e"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="other files"):
        write_bank(tmp_path / "other", record(), KEYS, GROUPS, [VECTORS])
