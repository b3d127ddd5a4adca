"""Provenance of a number besides the task: model, settings, versions, machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

import torch

from interlingua import __version__
from interlingua.encoder.model_info import ModelInfo
from interlingua.runtime import peak_rss_bytes

_PACKAGES = (
    "torch", "numpy", "transformers", "tokenizers", "sentencepiece", "sentence-transformers",
    "onnxruntime", "mteb", "scikit-learn", "ir-measures", "PyStemmer",
)  # fmt: skip


def provenance(model: ModelInfo, prompt: str, measured: Mapping[str, object]) -> dict[str, object]:
    """Return the record stored with a task's scores.

    Args:
        model: the encoder.
        prompt: text put before every input.
        measured: further entries, e.g. seconds and counts.
    """
    machine = [
        f"{platform.system()} {platform.machine()}",
        f"{os.cpu_count()} CPUs",
        *_gpu(model.device),
    ]
    # optional packages that are not installed are left out
    versions = {name: version for name in _PACKAGES if (version := _version(name))}
    return {
        # revision is a property, which asdict leaves out
        "model": {**asdict(model), "revision": model.revision},
        "prompt": prompt,
        **measured,
        "peak_rss_bytes": peak_rss_bytes(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
        "python": platform.python_version(),
        "machine": ", ".join(machine),
        "threads": torch.get_num_threads(),
        "versions": {"interlingua": __version__, **versions},
    }


def _gpu(device: str | None) -> list[str]:
    if device is None or not device.startswith("cuda"):
        return []
    return [torch.cuda.get_device_name(device)]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
