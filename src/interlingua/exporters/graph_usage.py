"""The section of a card that says how to run a directory of graphs; the tests run its lines."""

from __future__ import annotations

import json
from collections.abc import Sequence

from interlingua.encoder.encoder import Encoder
from interlingua.exporters.gguf import gguf_file
from interlingua.exporters.runtimes import ONNX_FILES, OPENVINO_FILE

_TEXTS = ("The cat sits on the mat.", "Die Katze sitzt auf der Matte.")


def graph_usage(encoder: Encoder, kinds: Sequence[str], *, dtype: str = "float32") -> str:
    """Return instructions to run the graphs without PyTorch.

    Args:
        encoder: the model.
        kinds: the kinds of graphs in the directory.
        dtype: type in which the weights of the graphs are stored.
    """
    heading = "## Use"
    # A compact directory has the section on sentence-transformers above this one.
    if "compact" in kinds:
        heading = "## Use without PyTorch"
    parts = [heading, "No PyTorch is needed; run this in the directory of this file."]
    graphs = {"onnx": ONNX_FILES["onnx"], "int8": ONNX_FILES["onnx int8"]}
    files = [file for kind, file in graphs.items() if kind in kinds or "compact" in kinds]
    if files:
        lines = _graph(
            encoder,
            "onnxruntime",
            f'session = onnxruntime.InferenceSession("{files[0]}")',
            '(vectors,) = session.run(["sentence_embedding"], feed)',
        )
        parts += ["`pip install onnxruntime tokenizers`", _block(lines)]
    if len(files) > 1:
        parts.append(f"The same with `{files[1]}`, which has int8 products.")
    if "openvino" in kinds:
        hint = '{"INFERENCE_PRECISION_HINT": "f32"}'
        lines = _graph(
            encoder,
            "openvino",
            f'model = openvino.compile_model("{OPENVINO_FILE}", "CPU", {hint})',
            'vectors = model(feed)["sentence_embedding"]',
        )
        precision = "OpenVINO computes in bfloat16 where the processor can; the hint keeps float32."
        parts += ["`pip install openvino tokenizers`", _block(lines), precision]
    if "gguf" in kinds:
        served = f"llama.cpp's own server: `llama-server -m {gguf_file(dtype)} --embedding`."
        parts += ["`pip install xllamacpp`", _block(_gguf(encoder, dtype)), served]
    if "compact" not in kinds:
        parts.append(
            "There are no weights here for sentence-transformers or transformers, which can't load"
            " this directory: `interlingua export MODEL -o DIR` writes one for them."
        )
    if encoder.settings.normalize:
        parts.append("Vectors have length 1: their inner product is the cosine.")
    return "\n\n".join(parts)


def _graph(encoder: Encoder, library: str, session: str, run: str) -> list[str]:
    """Return code lines that run a graph.

    ``session`` is the line that opens it, ``run`` the line that computes vectors of ``feed``.
    """
    return [
        f"import numpy as np, {library}",
        "from tokenizers import Tokenizer",
        "",
        *_tokenized(encoder),
        session,
        'feed = {"input_ids": np.array([t.ids for t in tokens]),'
        ' "attention_mask": np.array([t.attention_mask for t in tokens])}',
        run,
        "print(vectors @ vectors.T)",
    ]


def _gguf(encoder: Encoder, dtype: str) -> list[str]:
    return [
        "import numpy as np, xllamacpp",
        "",
        "options = xllamacpp.CommonParams()",
        f'options.model.path = "{gguf_file(dtype)}"',
        "options.embedding = True",
        "server = xllamacpp.Server(options)",
        f'answer = server.handle_embeddings({{"input": {_texts(encoder)}, "model": ""}})',
        'vectors = np.array([item["embedding"] for item in answer["data"]])',
        "print(vectors @ vectors.T)",
    ]


def _tokenized(encoder: Encoder) -> list[str]:
    """Return code lines that tokenize the texts."""
    vocabulary = encoder.vocabulary
    # Any id that has a row in the table can be used for padding, because the mask hides padding.
    pad_token = vocabulary.special_tokens.get("pad_token")
    pad_id = 0
    if pad_token:
        pad_id = vocabulary.pad_id
    lines = ['tokenizer = Tokenizer.from_file("tokenizer.json")']
    # tokenizer.json can't hold this setting.
    if vocabulary.spells_special_tokens:
        lines.append("tokenizer.encode_special_tokens = True")
    return [
        *lines,
        f"tokenizer.enable_truncation({encoder.max_tokens})",
        f"tokenizer.enable_padding(pad_id={pad_id}, pad_token={json.dumps(pad_token or '[PAD]')})",
        f"tokens = tokenizer.encode_batch({_texts(encoder)})",
    ]


def _texts(encoder: Encoder) -> str:
    """Return two texts as code, with the first of the model's prompts."""
    before = next(iter(encoder.settings.prompts.values()), "")
    return json.dumps([before + text for text in _TEXTS])


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["```python", *lines, "```"])
