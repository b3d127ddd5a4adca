"""A directory of graphs that need no PyTorch, with tokenizer and card: ONNX, OpenVINO, GGUF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, import_extra
from interlingua.exporters.card import LIBRARY, Provenance, model_card, stock_usage
from interlingua.exporters.compact import write_compact
from interlingua.exporters.gguf import gguf_file, write_gguf
from interlingua.exporters.graph import build_graph
from interlingua.exporters.graph_usage import graph_usage
from interlingua.exporters.graph_weights import FloatWeights, Int8Weights
from interlingua.exporters.runtimes import ONNX_FILES, OPENVINO_FILE, RECORDED
from interlingua.exporters.sentence_transformers import (
    DEFAULTS,
    ExportSettings,
    changed,
    find_model,
    refuse_inexpressible,
    refuse_segmentation,
    write_checked,
)
from interlingua.exporters.verify import Verification
from interlingua.storage.files import PathLike

GraphKind = Literal["onnx", "int8", "openvino", "compact", "gguf"]
DTYPES = ("float32", "float16")
LARGEST_FILE_BYTES = 1 << 30
"""Maximum size in bytes of weights in the graph's own file; larger weights are in a file next to
it. protobuf can hold at most twice as much."""


def export_graphs(
    source: PathLike,
    out: PathLike,
    kinds: Sequence[GraphKind],
    settings: ExportSettings = DEFAULTS,
) -> Verification | None:
    """Write graphs of a model, with pooling and normalization inside.

    Nothing appears at ``out`` unless their vectors agree with the model's.

    Args:
        source: a model directory or ``hf:owner/name``, or a run's folder.
        out: the new directory.
        kinds: ``onnx``; ``int8`` (ONNX with int8 products); ``openvino``; ``compact``, see
            ``exporters.compact``; ``gguf`` (for llama.cpp).
        settings: the dtype is float32 or float16, for gguf also int8; graphs compute in float32.

    Returns:
        how close the vectors are, or None if not checked.

    Raises:
        CheckpointError: no model at ``source``, or its vectors contain NaN or differ after export.
        ConfigError: weights can't be kept in this dtype.
        MissingExtraError: a library is not installed.
    """
    dtype = settings.dtype
    _check_kinds(dtype, kinds)
    model, run = find_model(source)
    encoder = changed(Encoder.load(model), settings)
    # A graph pools like the encoder. A compact directory is also loaded by the stock modules of
    # sentence-transformers, which support fewer settings.
    if settings.check and "compact" in kinds:
        refuse_inexpressible(encoder, model)
    elif settings.check:
        refuse_segmentation(encoder, model)

    def fill(folder: Path, provenance: Provenance) -> None:
        encoder.save(folder, weights=False)
        encoder.vocabulary.for_other_libraries().save(folder)
        write_graphs(encoder, folder, kinds, dtype, name=provenance.name)
        usage = graph_usage(encoder, kinds, dtype=dtype)
        if "compact" in kinds:
            usage = f"{stock_usage(encoder, provenance.name)}\n\n{usage}"
        card = model_card(encoder, provenance, usage=usage, library=_library(kinds))
        (folder / "README.md").write_text(card, encoding="utf-8")

    return write_checked(encoder, run, out, settings, fill)


def _check_kinds(dtype: str, kinds: Sequence[GraphKind]) -> None:
    """Refuse combinations of options in which one would be ignored.

    Raises:
        ConfigError: an option would be ignored; the message names it.
    """
    others = [kind for kind in kinds if kind not in ("compact", "gguf")]
    if "compact" in kinds and others:
        raise ConfigError(
            f"--compact and --{others[0]} cannot be combined, because both write to onnx/; use"
            " two output folders"
        )
    if "compact" in kinds and dtype != "float32":
        raise ConfigError(f"--compact stores float8, found --dtype {dtype}; remove --dtype")
    # GGUF is the only kind for which the dtype may be int8.
    if dtype == "int8" and tuple(kinds) == ("gguf",):
        return
    if dtype not in DTYPES:
        raise ConfigError(
            f"dtype: expected {' or '.join(DTYPES)}, found {dtype!r}; for int8 pass --int8"
        )


def _library(kinds: Sequence[GraphKind]) -> str:
    """Return the library that the card names; the hub accepts only one."""
    if "compact" in kinds:
        return LIBRARY
    if len(kinds) == 1 and kinds[0] in ("openvino", "gguf"):
        return kinds[0]
    return "onnx"


def write_graphs(
    encoder: Encoder,
    folder: Path,
    kinds: Sequence[GraphKind],
    dtype: str = "float32",
    *,
    name: str = "",
) -> None:
    """Write only the graphs, each kind to its place in the directory.

    Args:
        encoder: the model.
        folder: an existing folder.
        kinds: see ``export_graphs``.
        dtype: see ``export_graphs``.
        name: of the model, in a GGUF file.

    Raises:
        ConfigError: one of the kinds does not support a part of the model.
        MissingExtraError: a library is not installed.
    """
    if "gguf" in kinds:
        write_gguf(encoder, folder / gguf_file(dtype), name=name, dtype=dtype)
    if "compact" in kinds:
        write_compact(encoder, folder)
    if "int8" in kinds:
        save_onnx(build_graph(encoder, Int8Weights()), folder / ONNX_FILES["onnx int8"])
    if "onnx" not in kinds and "openvino" not in kinds:
        return
    # OpenVINO's files are made from the ONNX graph, which is removed if it was not requested.
    graph = folder / ONNX_FILES["onnx"]
    save_onnx(build_graph(encoder, FloatWeights(dtype)), graph)
    if "openvino" in kinds:
        _save_openvino(graph, folder / OPENVINO_FILE, dtype)
    if "onnx" not in kinds:
        for file in graph.parent.glob(f"{graph.name}*"):
            file.unlink()
        if not any(graph.parent.iterdir()):
            graph.parent.rmdir()


def save_onnx(model: Any, path: Path) -> None:
    """Write a graph, and the weights of a large graph to ``NAME.onnx_data`` next to it."""
    import onnx

    path.parent.mkdir(exist_ok=True)
    size = sum(len(constant.raw_data) for constant in model.graph.initializer)
    if size > LARGEST_FILE_BYTES:
        onnx.save(model, path, save_as_external_data=True, location=f"{path.name}_data")
    else:
        onnx.save(model, path)


def _save_openvino(graph: Path, path: Path, dtype: str) -> None:
    """Read an ONNX graph and write it as OpenVINO's ``.xml`` and ``.bin``."""
    openvino = import_extra("openvino", extra="openvino")
    path.parent.mkdir(exist_ok=True)
    # Do not use convert_model, because it reports its use to OpenVINO's makers.
    model = openvino.Core().read_model(graph)
    model.set_rt_info(dtype, RECORDED)
    openvino.save_model(model, path, compress_to_fp16=dtype == "float16")
