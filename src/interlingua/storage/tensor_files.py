"""Writing of safetensors files with the errors and permissions of any other file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.storage.files import usual_mode

if TYPE_CHECKING:
    from torch import Tensor


def write_safetensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file.

    Args:
        path: path of the file; its folder must exist.
        tensors: each contiguous, none sharing memory with another.
        metadata: texts for the header of the file, by key.

    Raises:
        OSError: the disk is full or can't be written; the error has a number, unlike that of
            safetensors.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    header = None
    if metadata is not None:
        header = dict(metadata)
    try:
        save_file(dict(tensors), path, metadata=header)
    # The library is written in Rust and gives the number of a system error only in the message.
    except SafetensorError as error:
        found = re.search(r"\bos error (\d+)|\bOs { code: (\d+)", str(error))
        if found is None:
            raise
        number = int(found[1] or found[2])
        raise OSError(number, os.strerror(number), os.fspath(path)) from error
    # safetensors creates files that only their owner can read.
    path.chmod(usual_mode())
