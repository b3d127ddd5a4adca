"""A sentence-transformers model as an encoder, run by that library."""

from __future__ import annotations

from typing import Any

from interlingua.encoder.directory import EncodingSettings
from interlingua.encoder.encode import DTYPES, Dtype, EncodeReport
from interlingua.encoder.weights import weights_digest
from interlingua.errors import CheckpointError, ConfigError, MissingExtraError
from interlingua.evaluation.backends.foreign import Choices, ForeignEncoder
from interlingua.evaluation.provenance import ModelInfo


class SentenceTransformersEncoder(ForeignEncoder):
    """A sentence-transformers model, run by that library in its own batches of 32.

    Args:
        model: a directory or hub id.
        name: as results call it.
        dtype: float32, bfloat16 or float16 to compute in.
        device: a torch device.

    Raises:
        ConfigError: the dtype is int8.
        CheckpointError: there is no such model, or the library can't read it.
        MissingExtraError: sentence-transformers is not installed.
    """

    takes = ("dtype", "device")

    def __init__(self, model: str, *, name: str, dtype: Dtype | None = None, device: str = "cpu") -> None:
        try:
            import sentence_transformers
        except ImportError as error:
            raise MissingExtraError("sentence-transformers", "sentence-transformers") from error
        if dtype not in (None, *DTYPES):
            raise ConfigError(f"sentence-transformers computes in {', '.join(DTYPES)}, got {dtype}")
        options = {"dtype": DTYPES[dtype]} if dtype else {}
        try:
            self._model: Any = sentence_transformers.SentenceTransformer(model, device=device, model_kwargs=options)
        except Exception as error:  # no such model, a broken one, modules that it lacks: each of another kind
            reason = " ".join(str(error).split())[:200]
            raise CheckpointError(
                f"{model}: sentence-transformers can't load this ({type(error).__name__}: {reason}); give a model"
                " directory that it has saved or a hub id, or another --backend"
            ) from error
        self.dim = self._model.get_embedding_dimension() or 0
        prompts = {name: text or "" for name, text in self._model.prompts.items()}
        self.settings = EncodingSettings(prompts=prompts, default_prompt=self._model.default_prompt_name)
        pooling = next((module for module in self._model if hasattr(module, "pooling_mode")), None)
        weights = next(self._model.parameters())
        self._limit: int | None = self._model.max_seq_length
        self.counts_tokens = self._limit is not None and hasattr(self._model.tokenizer, "pad")
        self.info = ModelInfo(
            name=name,
            digest=weights_digest(self._model.state_dict()),
            library=f"sentence-transformers {sentence_transformers.__version__}",
            dim=self.dim,
            pooling=None if pooling is None else str(pooling.pooling_mode),
            pooling_from=None if pooling is None else "model",
            normalized=any(type(module).__name__ == "Normalize" for module in self._model),
            dtype=str(weights.dtype).removeprefix("torch."),
            max_tokens=self._limit,
            device=str(weights.device),
        )

    @classmethod
    def load(cls, model: str, choices: Choices) -> SentenceTransformersEncoder:
        """See ``ForeignEncoder.load``."""
        cls.own_options(choices, "sentence-transformers")
        return cls(model, name=choices.name, dtype=choices.dtype, device=choices.device)

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        if self._limit is not None and self.counts_tokens:
            ids = self._model.tokenizer([prompt + text for text in texts], truncation=False, verbose=False)["input_ids"]
            report.max_tokens = self._limit
            report.tokens += sum(min(len(row), self._limit) for row in ids)
            report.cut_rows.extend(report.texts + row for row, found in enumerate(ids) if len(found) > self._limit)
        return self._model.encode(texts, prompt=prompt, show_progress_bar=False)
