"""Safetensors files: readable by others, and a full disk is an error with a number and a name."""

import contextlib
import errno
import os
import resource

import pytest
import torch
from safetensors.torch import load_file

from interlingua.errors import DataError
from interlingua.storage.files import atomic_directory
from interlingua.storage.tensor_files import write_safetensors


@contextlib.contextmanager
def full_disk():
    """Limit files to 300 bytes, like a full disk.

    Also of a file that the tests are logged to.
    """
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_what_is_written_is_read_and_others_may_read_it(tmp_path):
    before = os.umask(0o022)
    try:
        write_safetensors(
            tmp_path / "x.safetensors", {"a": torch.arange(6.0).reshape(2, 3)}, {"format": "pt"}
        )
    finally:
        os.umask(before)
    assert torch.equal(load_file(tmp_path / "x.safetensors")["a"], torch.arange(6.0).reshape(2, 3))
    assert (tmp_path / "x.safetensors").stat().st_mode & 0o777 == 0o644


def test_full_disk_has_its_number_and_the_file(tmp_path):
    with pytest.raises(OSError, match=r"x\.safetensors") as caught, full_disk():
        write_safetensors(tmp_path / "x.safetensors", {"a": torch.zeros(1000)})
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(tmp_path / "x.safetensors")


def test_full_disk_in_a_new_folder_is_one_line_and_leaves_no_folder(tmp_path):
    with (
        pytest.raises(DataError, match=r"cannot be written .*free") as caught,
        full_disk(),
        atomic_directory(tmp_path / "model") as folder,
    ):
        write_safetensors(folder / "model.safetensors", {"a": torch.zeros(1000)})
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
