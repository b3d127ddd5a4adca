"""Our own encoders as a backend: pooling, dtype and width as the user chose them.

With two towers, the encoder also has ``encode_queries`` and ``encode_passages``.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from typing import ClassVar

from interlingua.config import from_mapping
from interlingua.encoder.backends.foreign import Choices, NoOptions
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import describe_encoder
from interlingua.encoder.pooling import PoolingMode
from interlingua.encoder.vector_format import check_width
from interlingua.errors import ConfigError
from interlingua.storage.locate import locate


class OwnEncoder:
    """An ``Encoder`` with the pooling and the dtype to evaluate it with.

    Args:
        encoder: a loaded one.
        name: the encoder's name in results.
        pooling: instead of the model's own.
        dtype: float32, bfloat16, float16 or int8 to compute in.
        dim: elements to keep of each vector.
        questions: a second tower, which embeds the questions of a search; the first one embeds all
            else.
        pooling_from: source of the model's own pooling, see ``ModelInfo``.

    Attributes:
        encode: the encoder's own, in that dtype.
        dim: elements of a vector.
        whole_dim: elements of a vector that is not cut.
        encoder: the caller's, with that pooling.
        own_pooling: pooling in the model's own files; None without one.

    Raises:
        ConfigError: a dim is requested and there are two towers, or the vectors have fewer
            elements.
    """

    takes: ClassVar[Sequence[str]] = ("pooling", "dtype", "device", "dim")
    has_files: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        name: str,
        pooling: PoolingMode | None = None,
        dtype: Dtype | None = None,
        dim: int | None = None,
        questions: Encoder | None = None,
        pooling_from: str = "model",
    ) -> None:
        self.encoder = encoder
        self.own_pooling: PoolingMode | None = None
        if pooling_from == "model":
            self.own_pooling = encoder.pooling
        if pooling is not None:
            encoder.settings = dataclasses.replace(encoder.settings, pooling=pooling)
            pooling_from = "requested"
        if dim is not None:
            check_width(dim, encoder.dim)
        self.dim = dim or encoder.dim
        self.whole_dim = encoder.dim
        self.settings = encoder.settings
        dtype = dtype or encoder.compute_dtype
        self.info = dataclasses.replace(
            describe_encoder(encoder, name=name),
            dim=self.dim,
            dtype=dtype,
            pooling_from=pooling_from,
        )
        self.encode = functools.partial(encoder.encode, dtype=dtype, truncate_dim=dim)
        if questions is not None:
            if dim is not None:
                raise ConfigError(
                    "truncate_dim is not supported for a model with two towers; remove truncate_dim"
                )
            towers = DualEncoder(encoder, questions)
            self.encode_queries = functools.partial(towers.encode_queries, dtype=dtype)
            self.encode_passages = functools.partial(towers.encode_passages, dtype=dtype)
            # With the first tower's digest, vectors of both towers would be kept under the same
            # name as vectors of a model that has only the first tower.
            both = f"{encoder.digest()} {questions.digest()}".encode()
            self.info = dataclasses.replace(self.info, digest=hashlib.sha256(both).hexdigest())

    @classmethod
    def load(cls, model: str, choices: Choices) -> OwnEncoder:
        """Read a model directory: one of ours, or one of a known family from Hugging Face.

        Without ``modules.json`` it pools by the mean of all tokens, including special ones.
        """
        from_mapping(NoOptions, choices.options, where="--set interlingua")
        folder = locate(model)
        towers = DualEncoder.load(folder).to(choices.device)
        questions: Encoder | None = None
        if towers.questions is not towers.passages:
            questions = towers.questions
        return cls(
            towers.passages,
            name=choices.name,
            pooling=choices.pooling,
            dtype=choices.dtype,
            dim=choices.dim,
            questions=questions,
            pooling_from="model" if (folder / "modules.json").is_file() else "assumed",
        )
