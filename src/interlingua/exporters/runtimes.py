"""The runtimes that encode texts with an exported directory, and use only the exported files.

The code here is like the code that a user of the directory would write. It shares no code with our
encoder, so that a comparison of the vectors shows everything that is missing in the files.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.encoder.directories.model_directory import EncodingSettings, read_json
from interlingua.errors import CheckpointError, ConfigError, import_extra
from interlingua.storage.arrays import normalize_rows

_Vectors = Float32[ndarray, "n d"]
ROUNDING = {"float32": 1e-5, "float16": 1e-4, "bfloat16": 1e-2, "int8": 5e-3, "float8": 2e-2}
ROUNDING |= {"F32": 1e-3, "F16": 1e-3, "Q8_0": 5e-3}
"""Largest 1 - cosine that counts as rounding, by the type of the weights.

The last three types are those of llama.cpp, which computes gelu by a table in half precision for
all types of weights."""
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
ONNX_FILES = {"onnx": "onnx/model.onnx", "onnx int8": "onnx/model_quantized.onnx"}
GGUF_FILES = "model-*.gguf"
OPENVINO_FILE = "openvino/openvino_model.xml"
RECORDED = ["interlingua", "weights"]
"""Key of an OpenVINO graph for the format of its weights."""
INT8_SINCE = (6, 2)
"""Minimum version of sentence-transformers; older versions stop with an error from torch."""
BATCH = 16


class Runtime(ABC):
    """Another library that encodes texts.

    Attributes:
        name: name of the runtime in reports.
        weights: type in which the weights are stored; it decides how close the vectors must be.
    """

    name: str
    weights: str

    @property
    def tolerance(self) -> float:
        """Largest allowed 1 - cosine to our own vectors."""
        return ROUNDING[self.weights]

    @abstractmethod
    def encode(self, texts: Sequence[str], *, prompt: str | None) -> _Vectors:
        """Encode texts to vectors of length 1.

        Args:
            texts: any number.
            prompt: name of one of the model's prompts.
        """


def refuse_int8(version: str) -> None:
    """Raise ConfigError if this sentence-transformers can't read token vectors in int8."""
    if tuple(map(int, version.split(".")[:2])) < INT8_SINCE:
        raise ConfigError(
            f"sentence-transformers {version} cannot read int8 token vectors; run: pip install"
            " 'sentence-transformers>=6.2', or export with --no-verify"
        )


class StockRuntime(Runtime):
    """``SentenceTransformer(folder)`` on the CPU, in float32 whatever the stored weights are.

    Args:
        folder: a model directory.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ConfigError: it is too old for the type of the weights.
    """

    name = "sentence-transformers"

    def __init__(self, folder: Path) -> None:
        library = import_extra(
            "sentence_transformers", package="sentence-transformers", extra="sentence-transformers"
        )
        described = read_json(folder / "config.json")
        # Token vectors and float8 have their own entry; the entry "dtype" is that of transformers.
        self.weights = described.get("embedding_dtype") or described.get("dtype") or "float32"
        if self.weights == "int8":
            refuse_int8(library.__version__)
        self.model = library.SentenceTransformer(
            str(folder), device="cpu", trust_remote_code=False
        ).float()

    def encode(self, texts: Sequence[str], *, prompt: str | None) -> _Vectors:
        """Encode texts, see ``Runtime``."""
        vectors: _Vectors = self.model.encode(
            list(texts), prompt_name=prompt, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors


class TokenizedRuntime(Runtime):
    """A runtime that uses ``tokenizer.json``, prompts and limits of an exported directory."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        tokenizer = read_json(folder / "tokenizer_config.json")
        model = read_json(folder / "config_sentence_transformers.json")
        self.settings = EncodingSettings(
            prompts=model["prompts"],
            default_prompt=model["default_prompt_name"],
            max_tokens=tokenizer["model_max_length"],
        )
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = tokenizer.get("split_special_tokens", False)
        self.tokenizer.enable_truncation(self.settings.max_tokens)
        # The mask hides padding, so id 0 can be used if the tokenizer has no padding token.
        pad = tokenizer.get("pad_token", "[PAD]")
        self.tokenizer.enable_padding(pad_id=self.tokenizer.token_to_id(pad) or 0, pad_token=pad)


class GraphRuntime(TokenizedRuntime):
    """A graph that takes token ids."""

    def encode(self, texts: Sequence[str], *, prompt: str | None) -> _Vectors:
        """Encode texts, see ``Runtime``."""
        before = self.settings.prompt_text(prompt)
        made = []
        for start in range(0, len(texts), BATCH):
            prompted = [before + text for text in texts[start : start + BATCH]]
            batch = self.tokenizer.encode_batch(prompted)
            ids = np.array([encoding.ids for encoding in batch], dtype=np.int64)
            mask = np.array([encoding.attention_mask for encoding in batch], dtype=np.int64)
            made.append(self.run(ids, mask))
        return normalize_rows(np.concatenate(made))

    @abstractmethod
    def run(self, ids: Int64[ndarray, "b l"], mask: Int64[ndarray, "b l"]) -> _Vectors:
        """Run the graph on a padded batch and return its output."""


class OnnxRuntime(GraphRuntime):
    """The runtime onnxruntime on the CPU.

    Args:
        folder: an exported directory.
        name: a key of ``ONNX_FILES``.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        CheckpointError: it can't run the graph.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        onnxruntime = import_extra("onnxruntime", extra="onnx")
        self.name = name
        options = onnxruntime.SessionOptions()
        # Log errors, but no warnings.
        options.log_severity_level = 3
        graph = folder / ONNX_FILES[name]
        with _reported(f"{graph}: onnxruntime cannot run the graph"):
            self.session: Any = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"]
            )
        self.weights = self.session.get_modelmeta().custom_metadata_map.get("weights", "float32")

    def run(self, ids: Int64[ndarray, "b l"], mask: Int64[ndarray, "b l"]) -> _Vectors:
        """Run the graph, see ``GraphRuntime``."""
        (vectors,) = self.session.run(
            ["sentence_embedding"], {"input_ids": ids, "attention_mask": mask}
        )
        return np.asarray(vectors)


class OpenVinoRuntime(GraphRuntime):
    """OpenVINO on the CPU, set to compute in float32.

    By default it uses bfloat16 if the processor supports it.

    Args:
        folder: an exported directory.

    Raises:
        MissingExtraError: openvino is not installed.
        CheckpointError: it can't run the graph.
    """

    name = "openvino"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        openvino = import_extra("openvino", extra="openvino")
        graph = folder / OPENVINO_FILE
        with _reported(f"{graph}: openvino cannot run the graph"):
            model = openvino.Core().read_model(graph)
            self.model: Any = openvino.compile_model(
                model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
            )
        self.weights = "float32"
        if model.has_rt_info(RECORDED):
            record = model.get_rt_info(RECORDED)
            # Some versions return an object that holds the value, others the value itself.
            self.weights = str(getattr(record, "value", record))

    def run(self, ids: Int64[ndarray, "b l"], mask: Int64[ndarray, "b l"]) -> _Vectors:
        """Run the graph, see ``GraphRuntime``."""
        outputs = self.model({"input_ids": ids, "attention_mask": mask})
        return np.array(outputs["sentence_embedding"])


class LlamaCppRuntime(TokenizedRuntime):
    """The runtime llama.cpp on the CPU.

    Args:
        folder: an exported directory.
        file: the GGUF file in it.

    Raises:
        MissingExtraError: xllamacpp is not installed.
        CheckpointError: it can't run the file.
    """

    name = "llama.cpp"

    def __init__(self, folder: Path, file: Path) -> None:
        super().__init__(folder)
        xllamacpp = import_extra("xllamacpp", extra="gguf")
        # The name of the file ends with the kind of its weights, see gguf_file.
        self.weights = file.stem.rpartition("-")[2]
        options = xllamacpp.CommonParams()
        options.model.path = str(file)
        options.embedding = True
        options.n_parallel = 1
        options.warmup = False
        # Log nothing.
        options.verbosity = -1
        # A text is computed as a whole, so the longest one has to fit into a batch.
        options.n_ctx = options.n_batch = options.n_ubatch = self.settings.max_tokens
        with _reported(f"{file}: llama.cpp cannot load the file"):
            self.server: Any = xllamacpp.Server(options)

    def encode(self, texts: Sequence[str], *, prompt: str | None) -> _Vectors:
        """Encode texts, see ``Runtime``."""
        before = self.settings.prompt_text(prompt)
        vectors = []
        for text in texts:
            request = {"input": [self._cut(before + text)], "model": ""}
            answer = self.server.handle_embeddings(request)
            if "data" not in answer:
                raise CheckpointError(
                    f"llama.cpp returned no vector for {text[:60]!r} ({str(answer)[:150]});"
                    " export the model again"
                )
            vectors.append(answer["data"][0]["embedding"])
        return np.array(vectors, dtype=np.float32)

    def _cut(self, text: str) -> str:
        """Cut a text at the model's limit, because llama.cpp refuses longer ones."""
        encoding = self.tokenizer.encode(text)
        if not encoding.overflowing:
            return text
        # The last token is a special one without a place in the text, so take the largest end.
        end = max(end for _, end in encoding.offsets)
        return text[:end]


def runtimes(folder: Path) -> list[Runtime]:
    """Return all runtimes for the files in an exported directory.

    Raises:
        CheckpointError: there is nothing to run.
        MissingExtraError: a library is not installed.
    """
    found: list[Runtime] = []
    if any((folder / file).is_file() for file in WEIGHT_FILES):
        found.append(StockRuntime(folder))
    found += [
        OnnxRuntime(folder, name) for name, file in ONNX_FILES.items() if (folder / file).is_file()
    ]
    if (folder / OPENVINO_FILE).is_file():
        found.append(OpenVinoRuntime(folder))
    found += [LlamaCppRuntime(folder, file) for file in sorted(folder.glob(GGUF_FILES))]
    if not found:
        raise CheckpointError(
            f"{folder}: the folder contains no weights and no graph; name a folder that"
            " `interlingua export` wrote"
        )
    return found


@contextlib.contextmanager
def _reported(problem: str) -> Iterator[None]:
    """Raise CheckpointError for any exception of a library in the block.

    The libraries' exceptions share no base class.
    """
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise CheckpointError(f"{problem} ({reason}); export the model again") from error
