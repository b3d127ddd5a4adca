"""Writing safetensors files: a full disk is an OSError, as with any other file, and who may read
them is usual.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.files import usual_mode

if TYPE_CHECKING:
    from torch import Tensor


def write_safetensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a safetensors file.

    Args:
        path: of the file; its folder is there.
        tensors: each contiguous, none sharing memory with another.
        metadata: of the file, for its header.

    Raises:
        OSError: the disk is full or can't be written; safetensors alone raises an error without a
            number.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(dict(tensors), path, metadata=None if metadata is None else dict(metadata))
    except SafetensorError as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        if found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), os.fspath(path)) from error
    path.chmod(usual_mode())  # safetensors lets only its owner read it
