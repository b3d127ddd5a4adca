"""An ONNX graph with its tokenizer as an encoder, run by onnxruntime."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

from interlingua.config import CheckedSettings
from interlingua.encoder.backends.foreign import Choices, ForeignEncoder
from interlingua.encoder.directories.model_directory import (
    MODEL_TYPES,
    read_backbone_config,
    read_json,
)
from interlingua.encoder.directories.static_directory import read_any_settings
from interlingua.encoder.encode import (
    CPU_BATCH_TOKENS,
    EncodeReport,
    cut_ids,
    token_budget_batches,
)
from interlingua.encoder.model_info import ModelInfo
from interlingua.encoder.pooling import POOLING_MODES, HiddenStates, PoolingMode
from interlingua.errors import CheckpointError, ConfigError, TaskError, import_extra
from interlingua.storage.arrays import normalize_rows
from interlingua.storage.files import sha256_file
from interlingua.storage.locate import locate
from interlingua.vocabulary.model_files import AnyModelFile, TokenizerFile
from interlingua.vocabulary.vocabulary import Vocabulary

GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
POOLED = ("sentence_embedding", "sentence_embeddings")
"""Names of the output of graphs that pool by themselves."""
_TOKENS = ("last_hidden_state", "token_embeddings", "hidden_states")
DEFAULT_MAX_TOKENS = 512
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


@dataclass(frozen=True, kw_only=True, slots=True)
class OnnxOptions(CheckedSettings):
    """Options of the backend ``onnx``."""

    file: str = ""
    """Path of the graph in the directory (``onnx/model_quantized.onnx``); default: the first of
    model.onnx, onnx/model.onnx and onnx/model_quantized.onnx that exists."""


class OnnxEncoder(ForeignEncoder):
    """A directory with ``tokenizer.json`` and an ONNX graph of a transformer.

    If the graph gives token states, they are pooled here as ``1_Pooling`` says, or by the mean of
    all tokens if there is no such file. If it has an output called ``sentence_embedding``, or no
    token states but an output with one vector per text, that output is used as it is.

    Args:
        model: a directory or ``hf:owner/name``.
        choices: name, pooling instead of the model's own, device.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        CheckpointError: there is no graph, or onnxruntime can't run it.
        ConfigError: ``pooling`` is set but the graph pools by itself, or the device can't be used.
    """

    takes = ("pooling", "device")
    Options = OnnxOptions
    counts_tokens = True

    def __init__(self, model: str, choices: Choices) -> None:
        options, overrides = self.own_options(choices, "onnx")
        folder = locate(model, patterns=("*.json", "*.txt", "*.model", "*.onnx*", "onnx/*"))
        graph = _graph(folder, options.file)
        self._graph = graph
        self._vocabulary = Vocabulary.of_model(folder)
        self._session, version = _session(graph, choices.device)
        # Some graphs take their inputs as 32-bit numbers.
        self._inputs = {
            put.name: _INTEGERS.get(put.type, np.int64) for put in self._session.get_inputs()
        }
        self._output, pools = _output(self._session, graph, pooling=choices.pooling)
        self.settings = read_any_settings(folder, _limit(folder))
        # Three things may decide the pooling: the user, the model's files, and the graph itself.
        is_declared = (folder / "modules.json").is_file()
        self.own_pooling: PoolingMode | None = None
        if is_declared:
            self.own_pooling = self.settings.pooling
        pooling_from = "model" if pools or is_declared else "assumed"
        if choices.pooling:
            self.settings = dataclasses.replace(self.settings, pooling=choices.pooling)
            pooling_from = "requested"
        self._pooling: PoolingMode | None = self.settings.pooling
        pooling_name: str = self.settings.pooling
        if pools:
            self._pooling = None
            pooling_name = "in the graph"
        # A graph may leave the width open; then the first vector determines it.
        shapes = {out.name: out.shape for out in self._session.get_outputs()}
        width = shapes[self._output][-1]
        self.dim = width if isinstance(width, int) else 0
        self.info = ModelInfo(
            name=choices.name,
            digest=_digest(graph, self._vocabulary),
            library=f"onnxruntime {version}",
            dim=self.dim or None,
            pooling=pooling_name,
            pooling_from=pooling_from,
            normalized=self.settings.normalize,
            dtype="as in the graph",
            max_tokens=self.settings.max_tokens,
            device=choices.device,
            overrides=overrides,
        )

    @classmethod
    def load(cls, model: str, choices: Choices) -> OnnxEncoder:
        """Load a directory with an ONNX graph and its tokenizer, see ``ForeignEncoder.load``."""
        return cls(model, choices)

    def poolings(
        self, texts: Sequence[str], *, prompt: str | None = None
    ) -> dict[str, Float32[ndarray, "n d"]]:
        """Return the vectors of every pooling; none if the graph pools."""
        if self._pooling is None:
            return {}
        own = self._pooling
        found: dict[str, Any] = {}
        # The loop sets the encoder's own pooling, which is put back at the end.
        for self._pooling in POOLING_MODES:
            found[self._pooling] = self.encode(texts, prompt=prompt)
        self._pooling = own
        return found

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        prompted = [prompt + text for text in texts]
        ids = cut_ids(self._vocabulary, prompted, self.settings.max_tokens, report)
        if self.info.device == "cpu":
            batch_tokens = min(batch_tokens, CPU_BATCH_TOKENS)
        # The width may be known only with the first vector, so vectors are kept one by one.
        rows_of_vectors: list[Any] = [None] * len(texts)
        for rows in token_budget_batches([len(found) for found in ids], batch_tokens):
            for row, vector in zip(rows, self._run([ids[row] for row in rows]), strict=True):
                rows_of_vectors[row] = vector
        vectors = np.stack(rows_of_vectors)
        if self.settings.normalize:
            vectors = normalize_rows(vectors)
        return vectors

    def _run(self, ids: list[list[int]]) -> Float32[ndarray, "b d"]:
        # Graphs take rectangles of ids: padding is added here and removed before the pooling.
        lengths = np.array([len(row) for row in ids])
        mask = np.arange(lengths.max()) < lengths[:, None]
        padded = np.full(mask.shape, self._vocabulary.pad_id)
        padded[mask] = np.concatenate(ids)
        known = {
            "input_ids": padded,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(padded),
        }
        feed = {name: known[name].astype(kind) for name, kind in self._inputs.items()}
        states = self._states(feed, mask)
        if self._pooling is None:
            return states
        return self._pool(states[mask], padded[mask], lengths)

    def _states(
        self, feed: dict[str, Any], mask: Bool[ndarray, "b t"]
    ) -> Float32[ndarray, "b *t d"]:
        """Run the graph on a batch; return a vector of each text, or of each token.

        Raises:
            TaskError: onnxruntime fails on the batch, or the output has another type or shape.
        """
        try:
            (found,) = self._session.run([self._output], feed)
        except Exception as error:  # its exceptions share no base
            reason = " ".join(str(error).split())[:150]
            raise TaskError(
                f"{self._graph}: onnxruntime failed on a batch ({reason}); export the model again"
            ) from error
        states = np.asarray(found)
        expected = mask.shape
        if self._pooling is None:
            expected = mask.shape[:1]
        if states.dtype.kind not in "fiu" or states.shape[:-1] != expected or not states.size:
            raise TaskError(
                f"{self._graph}: the output is {states.dtype} of shape {states.shape} for"
                f" {mask.shape[0]} texts of {mask.shape[1]} tokens, expected numbers of shape"
                f" {(*expected, 'd')}; export the model again"
            )
        return states.astype(np.float32, copy=False)

    def _pool(
        self,
        states: Float32[ndarray, "t d"],
        ids: Int64[ndarray, " t"],
        lengths: Int64[ndarray, " b"],
    ) -> Float32[ndarray, "b d"]:
        assert self._pooling is not None
        borders = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
        special = torch.from_numpy(np.isin(ids, self._vocabulary.special_ids))
        hidden = HiddenStates(torch.from_numpy(states), borders, special)
        pooled = hidden.pool(self._pooling, include_special=self.settings.include_special)
        return np.asarray(pooled.numpy())


def _graph(folder: Path, file: str) -> Path:
    for name in (file,) if file else GRAPHS:
        if (folder / name).is_file():
            return folder / name
    raise CheckpointError(
        f"{folder}: {file or ' or '.join(GRAPHS)} not found; name the graph: --set"
        " onnx.file=NAME.onnx"
    )


def _session(graph: Path, device: str) -> tuple[Any, str]:
    onnxruntime = import_extra("onnxruntime", extra="onnx")
    # CPUExecutionProvider, CUDAExecutionProvider; the number of a device is not part of the name.
    provider = f"{device.partition(':')[0].upper()}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise ConfigError(
            f"onnxruntime cannot use the device {device!r}; use cpu, or install onnxruntime-gpu"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # Only fatal errors, which end the process, are logged; all others are raised.
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(graph), options, providers=[provider])
    except Exception as error:  # its exceptions share no base
        reason = " ".join(str(error).split())[:150]
        raise CheckpointError(
            f"{graph}: onnxruntime cannot run the graph ({reason}); export or download the model"
            " again"
        ) from error
    unknown = [
        put.name
        for put in session.get_inputs()
        if put.name not in ("input_ids", "attention_mask", "token_type_ids")
    ]
    if unknown:
        raise CheckpointError(
            f"{graph}: the graph requires the input {unknown[0]!r}; expected only inputs of a"
            " text encoder: input_ids, attention_mask, token_type_ids"
        )
    return session, str(onnxruntime.__version__)


def _output(session: Any, graph: Path, *, pooling: str | None) -> tuple[str, bool]:
    """Return the name of the output to read, and whether it is pooled already."""
    ranks = {out.name: len(out.shape or ()) for out in session.get_outputs()}
    tokens = [
        *(name for name in _TOKENS if ranks.get(name) == 3),
        *(name for name, rank in ranks.items() if rank == 3),
    ]
    pooled = [name for name in POOLED if ranks.get(name) == 2]
    # An output of rank 2 without one of these names is a sentence vector only if the graph has no
    # token states; otherwise it is BERT's pooler_output.
    if not pooled and not tokens:
        pooled = [name for name, rank in ranks.items() if rank == 2]
    if pooled and pooling is None:
        return pooled[0], True
    if tokens:
        return tokens[0], False
    if pooled:
        raise ConfigError(
            f"{graph}: the graph computes the pooling and returns no token states; remove the"
            " pooling option"
        )
    raise CheckpointError(
        f"{graph}: the outputs are {', '.join(ranks)}; expected token states or one vector per"
        " text among them"
    )


def _limit(folder: Path) -> int:
    raw = read_json(folder / "config.json", missing={}, schema=AnyModelFile)
    own = None
    if raw.get("model_type") in MODEL_TYPES:
        own = read_backbone_config(folder, raw).max_tokens
    tokenizer = read_json(folder / "tokenizer_config.json", missing={}, schema=TokenizerFile)
    # transformers writes 1e30 where a tokenizer has no limit, so the smaller one counts.
    limits = [own or raw.get("max_position_embeddings"), tokenizer.get("model_max_length")]
    return int(min((limit for limit in limits if limit), default=DEFAULT_MAX_TOKENS))


def _digest(graph: Path, vocabulary: Vocabulary) -> str:
    """Return the digest of the graph, of the weight files next to it, and of the vocabulary."""
    # model.onnx, model.onnx.data, model.onnx_data: weights are stored next to graphs above 2 GiB.
    files = sorted(path for path in graph.parent.iterdir() if path.name.startswith(graph.name))
    parts = [*(f"{path.name} {sha256_file(path)}" for path in files), vocabulary.digest()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
