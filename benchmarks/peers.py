"""Other ways to run an encoder's weights on a CPU, each as fast as we know to make it.

``encode.py`` measures them.

- ``st``, ``st bf16``: sentence-transformers as it is, batches of 32, sorted by its own measure of
  length;
- ``onnx``, ``onnx int8``: onnxruntime on the graph that torch exports, fused by onnxruntime's
  optimizer for transformers, with int8 by dynamic quantization with a scale per channel;
- ``openvino bf16``, ``openvino fp32``: OpenVINO on the same model.

The graphs give token states. Their texts are sorted by the number of tokens, so that batches need
little padding, and numpy takes the mean of the states. They serve models that take the mean of
all tokens as their vector.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PEERS = ("st", "st bf16", "onnx", "onnx int8", "openvino bf16", "openvino fp32")
FILES = {
    "onnx": "fused.onnx",
    "onnx int8": "fused_int8.onnx",
    "openvino bf16": "model.xml",
    "openvino fp32": "model.xml",
}
BATCH = 32
Encode = Callable[[list[str]], np.ndarray]
Run = Callable[[np.ndarray, np.ndarray], np.ndarray]


def build_graphs(model: str, folder: Path, peers: Sequence[str]) -> None:
    """Write the missing graphs of these peers.

    Args:
        model: a directory or hf:owner/name.
        folder: where to.
        peers: names of ``PEERS``.
    """
    missing = [peer for peer in peers if peer in FILES and not (folder / FILES[peer]).exists()]
    if not missing:
        return
    import torch
    from transformers import AutoModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    net = AutoModel.from_pretrained(
        model, trust_remote_code=False, add_pooling_layer=False, attn_implementation="eager"
    ).eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            types = torch.zeros_like(input_ids)
            return self.net(input_ids, attention_mask, token_type_ids=types).last_hidden_state

    ids = torch.full((2, 9), 7)
    example = (ids, torch.ones_like(ids))
    if any(peer.startswith("openvino") for peer in missing):
        import openvino

        openvino.save_model(
            openvino.convert_model(States(), example_input=example), folder / "model.xml", False
        )
    if any(peer.startswith("onnx") for peer in missing):
        names = ["input_ids", "attention_mask"]
        axes = {name: {0: "batch", 1: "length"} for name in (*names, "states")}
        torch.onnx.export(
            States(),
            example,
            str(folder / "plain.onnx"),
            input_names=names,
            output_names=["states"],
            dynamic_axes=axes,
            dynamo=False,
            opset_version=17,
        )
        _fuse(folder, net.config, "onnx int8" in missing)


def _fuse(folder: Path, config: Any, int8: bool) -> None:
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.optimizer import optimize_model

    fused = optimize_model(
        str(folder / "plain.onnx"),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
        opt_level=0,
    )
    fused.save_model_to_file(str(folder / FILES["onnx"]))
    if int8:
        quantize_dynamic(
            folder / FILES["onnx"],
            folder / FILES["onnx int8"],
            per_channel=True,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
    (folder / "plain.onnx").unlink()


def load(peer: str, model: str, folder: Path, threads: int) -> Encode:
    """Load a peer, and return a function that encodes to unit vectors.

    Args:
        peer: a name of ``PEERS``.
        model: a directory or hf:owner/name.
        folder: where the graphs are.
        threads: to compute with.
    """
    if peer.startswith("st"):
        return _sentence_transformers(model, bfloat16=peer == "st bf16")
    graph = str(folder / FILES[peer])
    return _by_length(
        model, _onnx(graph, threads) if peer.startswith("onnx") else _openvino(graph, peer, threads)
    )


def _sentence_transformers(model: str, *, bfloat16: bool) -> Encode:
    import torch
    from sentence_transformers import SentenceTransformer

    options = {"dtype": torch.bfloat16} if bfloat16 else {}
    encoder = SentenceTransformer(
        model, device="cpu", model_kwargs=options, trust_remote_code=False
    )

    def encode(texts: list[str]) -> np.ndarray:
        return normalized(
            encoder.encode(texts, prompt="", batch_size=BATCH, show_progress_bar=False)
        )

    return encode


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1, in float32."""
    wide = vectors.astype(np.float32)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def _onnx(graph: str, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    wanted = {given.name for given in session.get_inputs()}

    def run(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        feed = {"input_ids": ids, "attention_mask": mask}
        return session.run(None, {name: feed[name] for name in wanted})[0]

    return run


def _openvino(graph: str, peer: str, threads: int) -> Run:
    import openvino

    precision = {"openvino bf16": "bf16", "openvino fp32": "f32"}[peer]
    options = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = openvino.Core().compile_model(graph, "CPU", options)
    return lambda ids, mask: compiled((ids, mask))[0]


def _by_length(model: str, run: Run) -> Encode:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    tokens, limit, padding = (
        tokenizer.backend_tokenizer,
        tokenizer.model_max_length,
        tokenizer.pad_token_id,
    )
    tokens.no_padding()
    tokens.enable_truncation(min(limit, 512))

    def encode(texts: list[str]) -> np.ndarray:
        rows = [found.ids for found in tokens.encode_batch_fast(texts)]
        order = np.argsort([-len(row) for row in rows], kind="stable")
        vectors = None
        for first in range(0, len(order), BATCH):
            batch = order[first : first + BATCH]
            lengths = np.array([len(rows[row]) for row in batch])
            mask = np.arange(lengths.max()) < lengths[:, None]
            ids = np.full(mask.shape, padding, dtype=np.int64)
            ids[mask] = np.concatenate([rows[row] for row in batch])
            states = run(ids, mask.astype(np.int64))
            means = (states * mask[:, :, None]).sum(1) / lengths[:, None]
            vectors = (
                np.empty((len(rows), means.shape[1]), dtype=np.float32)
                if vectors is None
                else vectors
            )
            vectors[batch] = normalized(means)
        return vectors

    return encode


if __name__ == "__main__":  # python peers.py MODEL FOLDER PEER ...
    build_graphs(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
