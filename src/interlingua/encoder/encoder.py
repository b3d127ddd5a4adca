"""The encoder: text in, one vector per sentence out.

All training methods train it, and all tools use it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.batches.tokens import TokenBatch
from interlingua.config.options import checked_call
from interlingua.config.registry import DEFAULT_MODEL
from interlingua.encoder.directories.model_directory import (
    MODEL_ENTRIES,
    EncodingSettings,
    is_ours,
    read_directory,
    write_directory,
)
from interlingua.encoder.directories.post_pooling_files import (
    check_cut,
    read_post_pooling,
    write_post_pooling,
)
from interlingua.encoder.directories.static_directory import (
    read_static,
    static_folder,
    write_static,
)
from interlingua.encoder.encode import (
    Dtype,
    EncodeReport,
    dtype_name,
    encode_texts,
)
from interlingua.encoder.executors.layers import Frozen
from interlingua.encoder.gradcache import in_parts
from interlingua.encoder.int8_ranges import calibrate_ranges
from interlingua.encoder.language_maps.language_shift import LanguageShift, read_shift, write_shift
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.meta_device import meta_device
from interlingua.encoder.modeling.weights import weights_digest
from interlingua.encoder.pooling import HiddenStates, PoolingMode
from interlingua.encoder.post_pooling import Dense, PostPooling
from interlingua.encoder.query_and_passage import Role, role_prompt
from interlingua.encoder.shared_passes import SharedPasses
from interlingua.encoder.snapshots import SnapshotCache
from interlingua.encoder.static import StaticBackbone, make_backbone
from interlingua.encoder.vector_format import VectorPrecision, check_width
from interlingua.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    count_of,
    did_you_mean,
    with_article,
)
from interlingua.runtime.collection import no_collection
from interlingua.runtime.devices import on_device
from interlingua.runtime.progress import Progress
from interlingua.storage.files import PathLike, atomic_directory
from interlingua.storage.locate import locate
from interlingua.vocabulary.trimming import trim_vocabulary
from interlingua.vocabulary.vocabulary import Vocabulary

__all__ = ["Encoder", "HiddenStates"]


class Encoder(nn.Module):
    """A backbone, the vocabulary that feeds it, and the settings that turn its states into vectors.

    Args:
        backbone: the transformer.
        vocabulary: tokenizer; its ids index the backbone's word embeddings.
        settings: pooling, prompts and limits.
        post_pooling: Dense and Normalize layers between pooling and the last scaling; default:
            none.
        language_shift: vectors that ``encode(language=...)`` subtracts after these layers;
            training subtracts nothing; default: none.

    Raises:
        ConfigError: the vocabulary has ids beyond the backbone's word embeddings, or a layer after
            pooling takes vectors of another width.
    """

    special_ids: Tensor
    gradcache_sentences: int | None = None
    """Number of sentences whose activations are held at a time in training, see
    ``encoder/gradcache.py``; None = all."""
    shared_passes: SharedPasses | None = None
    """Forward passes that several training methods share while the sum of their losses is computed;
    if ``gradcache_sentences`` is set, nothing is shared."""
    compute_dtype: Dtype = "float32"
    """Default dtype of ``encode``; ``load`` sets it."""

    def __init__(
        self,
        backbone: Backbone,
        vocabulary: Vocabulary,
        settings: EncodingSettings | None = None,
        post_pooling: PostPooling | None = None,
        language_shift: LanguageShift | None = None,
    ) -> None:
        super().__init__()
        if vocabulary.size > backbone.config.vocab_size:
            raise ConfigError(
                f"the vocabulary has {vocabulary.size} entries, but the backbone has only"
                f" {backbone.config.vocab_size} word embeddings; set vocab_size to the"
                " vocabulary's size"
            )
        self.backbone = backbone
        # Not `post_pooling or ...`: a PostPooling without layers has length 0 and so is false.
        if post_pooling is None:
            post_pooling = PostPooling()
        self.post_pooling = post_pooling
        self.language_shift = language_shift
        # Called only for its check: it raises if the widths do not fit.
        self.post_pooling.output_dim(self.hidden_size)
        self._snapshots = SnapshotCache()
        self.vocabulary = vocabulary
        self.settings = settings or EncodingSettings(max_tokens=backbone.config.max_tokens)
        # Unknown and masked tokens represent text, so that pooling counts them as content.
        content = {vocabulary.special_tokens.get(role) for role in ("unk_token", "mask_token")}
        special = [
            i for i in vocabulary.special_ids if vocabulary.tokenizer.id_to_token(i) not in content
        ]
        # A second copy that stays on the host, since the ids of a batch should be there too.
        self._specials_on_host = torch.tensor(special, dtype=torch.long)
        self.register_buffer("special_ids", self._specials_on_host, persistent=False)

    @property
    def dim(self) -> int:
        """Width of the vectors; less than ``full_dim`` if the settings cut them."""
        return self.settings.truncate_dim or self.full_dim

    @property
    def full_dim(self) -> int:
        """Width of the vectors before they are cut."""
        return self.post_pooling.output_dim(self.hidden_size)

    @property
    def hidden_size(self) -> int:
        """Width of the token states, and of the vectors unless a layer after pooling changes it."""
        return self.backbone.config.hidden_size

    def require_equal_widths(self) -> None:
        """Check that a sentence vector can replace a token state.

        Some training methods replace token states by sentence vectors.

        Raises:
            ConfigError: a Dense layer after pooling changes the width.
        """
        if self.dim != self.hidden_size:
            raise ConfigError(
                f"encoder: sentence vectors have {self.dim} elements and token states"
                f" {self.hidden_size}, but the method requires equal widths; use a model without"
                " a Dense layer that changes the width"
            )

    @property
    def pooling(self) -> PoolingMode:
        """The pooling of token states to a sentence vector."""
        return self.settings.pooling

    @property
    def max_tokens(self) -> int:
        """Largest number of tokens of a text, special ones included; longer texts are cut."""
        return min(self.settings.max_tokens, self.backbone.config.max_tokens)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.backbone.word_embeddings.weight.device

    def tokens(
        self, batch: TokenBatch, *, word_embeddings: Float[Tensor, "t d"] | None = None
    ) -> HiddenStates:
        """Compute the last-layer states of all tokens.

        Args:
            batch: the packed sentences.
            word_embeddings: rows to use instead of looking the ids up.
        """
        if self.gradcache_sentences is None:
            states = self._states(batch, word_embeddings)
        else:
            # GradCache takes gradients of the rows, so they are looked up beforehand.
            if word_embeddings is None:
                word_embeddings = self._looked_up(batch)
            states = in_parts(self._states, batch, word_embeddings, self.gradcache_sentences)
        return HiddenStates(states, batch.cu_seqlens, self.is_special(batch.input_ids))

    def is_special(self, input_ids: Int[Tensor, " t"]) -> Bool[Tensor, " t"]:
        """Return, for each token, whether it is special; unknown and mask tokens are not.

        The result is computed on the device of the ids, which should be the host.
        """
        # The buffer on the model's device is used for ids on that device, a copy for all others.
        specials = self.special_ids
        if specials.device != input_ids.device:
            specials = on_device(self._specials_on_host, input_ids.device)
        return torch.isin(input_ids, specials)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "b d"]:
        """Compute sentence vectors: pooling and the layers after it, without the last scaling."""
        if self.gradcache_sentences is None:
            return self._vectors(batch)
        rows = self._looked_up(batch)
        return in_parts(self._vectors, batch, rows, self.gradcache_sentences)

    def _looked_up(self, batch: TokenBatch) -> Float[Tensor, "t d"]:
        rows: Tensor = self.backbone.word_embeddings(on_device(batch.input_ids, self.device))
        return rows

    def _states(
        self, batch: TokenBatch, word_embeddings: Float[Tensor, "t d"] | None = None
    ) -> Float[Tensor, "t d"]:
        # Rows that a caller gives may differ from those of another pass over the same batch.
        if self.shared_passes is not None and word_embeddings is None:
            return self.shared_passes.states(batch, self._encoded)
        return self._encoded(batch, word_embeddings)

    def _encoded(
        self, batch: TokenBatch, word_embeddings: Float[Tensor, "t d"] | None = None
    ) -> Float[Tensor, "t d"]:
        states: Tensor = self.backbone(
            batch.input_ids, batch.cu_seqlens, word_embeddings=word_embeddings
        )
        return states

    def _vectors(
        self, batch: TokenBatch, word_embeddings: Float[Tensor, "t d"] | None = None
    ) -> Float[Tensor, "b d"]:
        special = self.is_special(batch.input_ids)
        # Token vectors are averaged during the look-up, so no (T, D) tensor is made.
        if (
            isinstance(self.backbone, StaticBackbone)
            and self.pooling == "mean"
            and word_embeddings is None
        ):
            kept = ~special
            if self.settings.include_special:
                kept = torch.ones_like(special)
            means = self.backbone.means(batch.input_ids, batch.cu_seqlens, kept)
            vectors: Tensor = self.post_pooling(means)
            return vectors[:, : self.dim]
        hidden = HiddenStates(self._states(batch, word_embeddings), batch.cu_seqlens, special)
        return self.pool(hidden)[:, : self.dim]

    def pool(self, hidden: HiddenStates) -> Float[Tensor, "b d"]:
        """Compute sentence vectors from token states as ``forward`` does, but of the full width."""
        pooled = hidden.pool(self.pooling, include_special=self.settings.include_special)
        vectors: Tensor = self.post_pooling(pooled)
        return vectors

    @overload
    def encode(
        self,
        texts: str | Iterable[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        language: str | None = None,
        batch_size: int | None = None,
        batch_tokens: int = 16_384,
        show_progress_bar: bool | Progress = False,
        precision: VectorPrecision = "float32",
        dtype: Dtype | None = None,
        convert_to_tensor: Literal[False] = False,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        out: PathLike | None = None,
        report: EncodeReport | None = None,
    ) -> Float32[np.ndarray, "*n d"]: ...

    @overload
    def encode(
        self,
        texts: str | Iterable[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        language: str | None = None,
        batch_size: int | None = None,
        batch_tokens: int = 16_384,
        show_progress_bar: bool | Progress = False,
        precision: VectorPrecision = "float32",
        dtype: Dtype | None = None,
        convert_to_tensor: Literal[True],
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        out: PathLike | None = None,
        report: EncodeReport | None = None,
    ) -> Float[Tensor, "*n d"]: ...

    @checked_call
    def encode(
        self,
        texts: str | Iterable[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        language: str | None = None,
        batch_size: int | None = None,
        batch_tokens: int = 16_384,
        show_progress_bar: bool | Progress = False,
        precision: VectorPrecision = "float32",
        dtype: Dtype | None = None,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        out: PathLike | None = None,
        report: EncodeReport | None = None,
    ) -> Float32[np.ndarray, "*n d"] | Float[Tensor, "*n d"]:
        """Return one vector per text, in the order of the texts, or one vector for a single string.

        Memory is bounded by a window of texts. A text without a visible character gets the zero
        vector, regardless of the prompt.

        Args:
            texts: one string, or any iterable of strings: a generator, a column of a table.
            prompt: the name of one of the model's prompts, or a text to put in front, which must
                not end with a letter or digit; "" = none, None = the model's default.
            prompt_name: name of one of the model's prompts, in place of ``prompt``.
            language: of the texts, in any code, for vocabularies that pre-tokenize by language.
            batch_size: upper limit of a batch, in texts; default: only the limit in tokens.
            batch_tokens: upper limit of a batch, in tokens.
            show_progress_bar: show a bar on standard error; without a terminal, a line a minute.
            precision: float32, int8, binary (bits in signed bytes) or ubinary (unsigned).
            dtype: to compute in; default: that of ``load``, else float32 (no TF32). int8 is for
                CPUs: two thirds of the products are in bytes. tf32 is for NVIDIA GPUs: products
                round their factors to 10 bits. auto: bfloat16 on a GPU; on a CPU the fastest of
                float32, bfloat16 and int8 with a cosine of 0.999 or more to float32.
            convert_to_tensor: return a tensor on the model's device, in place of an array.
            convert_to_numpy: return an array; False only with ``convert_to_tensor``.
            normalize_embeddings: scale the vectors to length 1.
            truncate_dim: number of first elements to keep of each vector; the cut vectors are
                scaled again.
            out: a ``.npy`` file to write instead of an array in memory; it appears when all texts
                are embedded. With it, or another precision, NaN or infinity is an error.
            report: counts texts, tokens and cut texts. Without a report, the first call that
                cuts texts logs a warning with their number.

        Returns:
            The vectors of shape (n, d), memory-mapped if ``out`` is set; for a single string,
            one vector of shape (d,).

        Raises:
            ConfigError: an option is invalid, or ``texts`` is a table, a dictionary or a set.
            DataError: an element is not a text, or a vector for ``out`` is not finite.
        """
        if not (convert_to_numpy or convert_to_tensor):
            raise ConfigError("convert_to_numpy=False requires convert_to_tensor=True; pass both")
        if convert_to_tensor and out is not None:
            raise ConfigError("convert_to_tensor and out cannot be combined; remove one")
        vectors = encode_texts(
            self,
            [texts] if isinstance(texts, str) else texts,
            prompt=self._chosen_prompt(prompt, prompt_name),
            language=language,
            batch_size=batch_size,
            batch_tokens=batch_tokens,
            normalize=normalize_embeddings,
            dim=truncate_dim,
            precision=precision,
            dtype=self.compute_dtype if dtype is None else dtype_name(dtype),
            out=out,
            report=report,
            progress=show_progress_bar,
        )
        if isinstance(texts, str):
            vectors = vectors[0]
        if convert_to_tensor:
            return torch.from_numpy(vectors).to(self.device)
        return vectors

    def _chosen_prompt(self, prompt: str | None, prompt_name: str | None) -> str | None:
        """Return the prompt of ``encode``, from either of its two arguments.

        Raises:
            ConfigError: both are set, or the model has no prompt of that name.
        """
        if prompt_name is None:
            return prompt
        if prompt is not None:
            raise ConfigError(
                f"prompt {prompt!r} and prompt_name {prompt_name!r} cannot be combined; remove one"
            )
        prompts = self.settings.prompts
        if prompt_name not in prompts:
            nearest = did_you_mean(prompt_name, prompts) or "; the model has no prompts"
            raise ConfigError(f"unknown prompt {prompt_name!r}{nearest}")
        return prompt_name

    def encode_query(self, texts: str | Iterable[str], **options: Any) -> Any:
        """Return the vectors of questions, with the model's prompt for them if it has one.

        Args:
            texts: see ``encode``.
            options: of ``encode``.
        """
        return self.encode(texts, **self._in_role("query", options))

    def encode_document(self, texts: str | Iterable[str], **options: Any) -> Any:
        """Return the vectors of passages, with the model's prompt for them if it has one.

        Args:
            texts: see ``encode``.
            options: of ``encode``.
        """
        return self.encode(texts, **self._in_role("passage", options))

    def _in_role(self, role: Role, options: dict[str, Any]) -> dict[str, Any]:
        """Return options of ``encode``, with the prompt of the role if they contain no prompt."""
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt"] = role_prompt(self, role, {}, None)
        return options

    @checked_call
    def similarity(
        self,
        embeddings1: Tensor | np.ndarray | Sequence[Any],
        embeddings2: Tensor | np.ndarray | Sequence[Any],
    ) -> Float[Tensor, "n m"]:
        """Return the cosine of every vector of one set with every vector of the other.

        Args:
            embeddings1: (n, d), or one vector (d,).
            embeddings2: (m, d), or one vector (d,).
        """
        one, other = as_unit_rows(embeddings1), as_unit_rows(embeddings2)
        _check_equal(one.shape[1:], other.shape[1:])
        return one @ other.T

    @checked_call
    def similarity_pairwise(
        self,
        embeddings1: Tensor | np.ndarray | Sequence[Any],
        embeddings2: Tensor | np.ndarray | Sequence[Any],
    ) -> Float[Tensor, " n"]:
        """Return the cosines of the vectors that have the same row in the two sets.

        Args:
            embeddings1: (n, d), or one vector (d,).
            embeddings2: (n, d), or one vector (d,).
        """
        one, other = as_unit_rows(embeddings1), as_unit_rows(embeddings2)
        _check_equal(one.shape, other.shape)
        return (one * other).sum(dim=1)

    def get_embedding_dimension(self) -> int:
        """Return the width of the vectors; sentence-transformers uses this name for ``dim``."""
        return self.dim

    def get_sentence_embedding_dimension(self) -> int:
        """Return the width of the vectors; sentence-transformers before 6 used this name."""
        return self.dim

    def __repr__(self) -> str:
        """Return one line that describes the model and its device."""
        config = self.backbone.config
        kind = f"{config.model_type}, {count_of(config.num_hidden_layers, 'layers')}"
        return (
            f"Encoder({kind}, {self.dim} dimensions, {self.pooling} pooling, up to"
            f" {self.max_tokens:,} tokens, on {self.device})"
        )

    calibrate_ranges = calibrate_ranges

    def frozen_backbone(self, dtype: torch.dtype | None) -> Frozen | StaticBackbone:
        """Return the backbone prepared for inference.

        Outside of training it is cached until the weights change.

        Args:
            dtype: to compute in; None = the fastest dtype that keeps vectors close to those in
                float32.
        """
        # A table of token vectors has no layers whose form could be changed for inference.
        if isinstance(self.backbone, StaticBackbone):
            return self.backbone
        return self._snapshots.snapshot(self.backbone, dtype)

    def train(self, mode: bool = True) -> Encoder:
        """Set training mode, and free the memory of ``frozen_backbone``."""
        self._snapshots.clear()
        return super().train(mode)

    def with_dense(self) -> Encoder:
        """Return the same weights with a new linear layer at the end, which changes nothing yet."""
        identity = Dense.identity(self.post_pooling.output_dim(self.hidden_size))
        layers = PostPooling([*self.post_pooling, identity])
        return Encoder(self.backbone, self.vocabulary, self.settings, layers, self.language_shift)

    def clone(self) -> Encoder:
        """Return a copy with its own weights, for example a teacher, on the same device.

        The vocabulary is shared.
        """
        return self.with_backbone(copy.deepcopy(self.backbone))

    def with_backbone(self, backbone: Backbone, vocabulary: Vocabulary | None = None) -> Encoder:
        """Return an encoder around another backbone, with the same settings.

        The layers after pooling and the language shift are copied.

        Args:
            backbone: its weights are not copied.
            vocabulary: of the backbone; default: the vocabulary of this encoder.
        """
        post_pooling = copy.deepcopy(self.post_pooling)
        shift = copy.deepcopy(self.language_shift)
        return Encoder(backbone, vocabulary or self.vocabulary, self.settings, post_pooling, shift)

    def trim(self, ids_in_use: Iterable[int]) -> Encoder:
        """Return a smaller encoder with the word embeddings of these ids and of special tokens.

        Vectors stay the same for all texts with only kept tokens.

        Args:
            ids_in_use: see :func:`interlingua.vocabulary.trimming.ids_in_use`.
        """
        vocabulary, kept = trim_vocabulary(self.vocabulary, ids_in_use)
        config = dataclasses.replace(
            self.backbone.config, vocab_size=vocabulary.size, pad_token_id=vocabulary.pad_id
        )
        # RoBERTa counts positions from the padding id on: another id would shift all positions.
        if config.first_position != self.backbone.config.first_position:
            raise ConfigError(
                f"trimming would move the padding id from {self.vocabulary.pad_id} to"
                f" {vocabulary.pad_id} and shift the positions of a {config.model_type} model;"
                " keep the ids below the padding id too"
            )
        weights = self.backbone.state_dict()
        rows = torch.from_numpy(kept).to(self.device)
        weights["word_embeddings.weight"] = weights["word_embeddings.weight"][rows]
        # On "meta" no memory is allocated and no number is drawn; the copies become the weights.
        with meta_device():
            backbone = make_backbone(config)
        copies = {name: tensor.clone() for name, tensor in weights.items()}
        backbone.load_state_dict(copies, assign=True)
        return self.with_backbone(backbone.requires_grad_(True), vocabulary).train(self.training)

    @classmethod
    def from_scratch(
        cls,
        config: BackboneConfig,
        vocabulary: Vocabulary,
        pooling: PoolingMode = "mean",
        *,
        initialization: Literal["torch", "bert"] = "torch",
    ) -> Encoder:
        """Return an untrained encoder, with weights drawn from torch's global generator.

        Args:
            config: shape of the backbone.
            vocabulary: its size must be the config's ``vocab_size``.
            pooling: cls, mean or max.
            initialization: "torch" as in EMS (embeddings N(0, 1)), or "bert" (N(0, 0.02)).
        """
        config = dataclasses.replace(config, pad_token_id=vocabulary.pad_id)
        # Made without values in the weights, so that only `initialize` uses the generator.
        with meta_device():
            backbone = Backbone(config)
        backbone.to_empty(device="cpu").initialize(initialization)
        settings = EncodingSettings(pooling=pooling, max_tokens=config.max_tokens)
        return cls(backbone, vocabulary, settings)

    @classmethod
    @no_collection()
    def load(cls, path_or_id: PathLike, *, device: str | torch.device | None = None) -> Encoder:
        """Read a model: ours, any BERT/RoBERTa/XLM-R-shaped one, or token vectors.

        Args:
            path_or_id: a model directory, a training run (its best model is read), or
                ``hf:owner/name``.
            device: device of the weights: cpu, cuda, cuda:1; the CPU by default.

        Raises:
            CheckpointError: there is no such model, or it is damaged or of another kind.
            ConfigError: there is no such device here.
        """
        # First of all, so that a wrong device is refused before gigabytes are read.
        chosen = choose_device("cpu" if device is None else str(device))
        folder = locate(path_or_id)
        table = static_folder(folder)
        if table is None:
            config, weights, settings = read_directory(folder)
            vocabulary = Vocabulary.of_model(folder)
        else:
            config, weights, settings = read_static(folder, table)
            vocabulary = Vocabulary.of_model(table)
        # The tensors of the file become the parameters themselves: they are in memory once.
        with meta_device():
            backbone = make_backbone(config)
        backbone.load_state_dict(weights, assign=True)
        backbone.requires_grad_(True)
        # Layers after pooling have their own files, and must fit the width before them.
        post_pooling = read_post_pooling(folder, config.hidden_size)
        _refuse_zeros({**backbone.state_dict(), **post_pooling.state_dict()}, folder)
        width = post_pooling.output_dim(config.hidden_size)
        check_cut(settings.truncate_dim, width, folder)
        shift = read_shift(folder, width)
        return cls(backbone, vocabulary, settings, post_pooling, shift).eval().to(chosen)

    def save(
        self, folder: PathLike, *, dtype: torch.dtype | None = None, weights: bool = True
    ) -> None:
        """Write a model directory that sentence-transformers and transformers read too.

        Args:
            folder: replaced completely if it contains one of our models.
            dtype: of the stored weights; default: as they are. int8 only for token vectors.
            weights: False = write everything except the weights, for a folder whose exported
                graphs contain the weights.

        Raises:
            ConfigError: the folder holds something else.
        """
        vocabulary = self.vocabulary
        described = (self.settings, self.vocabulary.special_tokens)
        spells = vocabulary.spells_special_tokens
        with atomic_directory(
            folder, overwrite=True, ours=is_ours, entries=MODEL_ENTRIES
        ) as temporary:
            vocabulary.save(temporary)
            if isinstance(self.backbone, StaticBackbone):
                table: Tensor | None = None
                if weights:
                    table = self.backbone.word_embeddings.weight
                write_static(
                    temporary,
                    table,
                    self.backbone.config,
                    *described,
                    spells_special_tokens=spells,
                    dtype=dtype,
                    after_pooling=self.post_pooling.kinds,
                )
            else:
                tensors: dict[str, Tensor] = {}
                if weights:
                    state = self.backbone.state_dict()
                    tensors = {
                        name: tensor.to(dtype or tensor.dtype) for name, tensor in state.items()
                    }
                write_directory(
                    temporary,
                    self.backbone.config,
                    tensors,
                    *described,
                    spells_special_tokens=spells,
                    after_pooling=self.post_pooling.kinds,
                )
            if self.language_shift is not None:
                write_shift(self.language_shift, temporary)
            # Always float32: these layers are small, and a rounded map would not be exact.
            write_post_pooling(self.post_pooling, temporary)

    def digest(self) -> str:
        """Compute the hex SHA-256 of the weights' names and bytes and of the vocabulary."""
        weights = self.backbone.state_dict()
        for name, tensor in self.post_pooling.state_dict().items():
            weights[f"post_pooling.{name}"] = tensor
        # Layers without weights, such as Normalize, differ by their descriptions.
        begin = self.vocabulary.digest() + "".join(self.post_pooling.described)
        if self.language_shift is not None:
            weights["language_shift.means"] = self.language_shift.means
            begin += " ".join(self.language_shift.languages)
        return weights_digest(weights, begin=begin)


def as_unit_rows(vectors: Tensor | np.ndarray | Sequence[Any]) -> Float[Tensor, "n d"]:
    """Return vectors, or a single one, as rows of length 1; a vector of zeros stays as it is.

    Raises:
        DataError: the values are not vectors.
    """
    try:
        # Row by row, since torch would convert a list of arrays number by number.
        if isinstance(vectors, Sequence) and not isinstance(vectors, str):
            rows = torch.stack([torch.as_tensor(row) for row in vectors])
        else:
            rows = torch.as_tensor(vectors)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = with_article(type(vectors).__name__)
        raise DataError(
            f"expected vectors (n, d) or one vector (d,), found {kind} ({error}); encode texts"
            " first"
        ) from None
    if rows.dim() == 1:
        rows = rows[None]
    if rows.dim() != 2:
        raise DataError(
            f"expected vectors (n, d) or one vector (d,), found shape {tuple(rows.shape)}"
        )
    return F.normalize(rows.float(), dim=1)


def _check_equal(one: Sequence[int], other: Sequence[int]) -> None:
    """Check that vectors can be compared.

    Raises:
        DataError: the widths differ, or, for pairs, the numbers of vectors differ.
    """
    if tuple(one) != tuple(other):
        raise DataError(
            f"vectors of shapes {tuple(one)} and {tuple(other)} cannot be compared; embed both"
            " with the same model and truncate_dim"
        )


@checked_call
def load(
    path_or_id: PathLike = DEFAULT_MODEL,
    *,
    device: str | torch.device | None = "auto",
    dtype: Dtype | torch.dtype = "float32",
    truncate_dim: int | None = None,
) -> Encoder:
    """Read a model for use, as ``Encoder.load`` does, on a GPU if there is one.

    Args:
        path_or_id: a model directory, a training run (its best model is read), ``hf:owner/name``,
            or the name of an installed model; by default ``mini``, the model of the extra ``mini``.
        device: device of the weights: cpu, cuda, cuda:1; auto or None = the first GPU where there
            is one, else the CPU.
        dtype: default dtype of ``encode``, as a name or as a dtype of torch: float32, tf32,
            bfloat16, float16, int8, auto.
        truncate_dim: number of first elements to keep of each vector; default: all.

    Raises:
        CheckpointError: there is no such model, or it is damaged or of another kind.
        ConfigError: there is no such device here, or an option is unknown or out of range.
    """
    # Checked before gigabytes are read.
    computing = dtype_name(dtype)
    # torch.device("cpu") == "auto" is False, so both a device and its name can be passed.
    if device is None or device == "auto":
        device = choose_device()
    encoder = Encoder.load(path_or_id, device=device)
    encoder.compute_dtype = computing
    if truncate_dim is not None:
        check_width(truncate_dim, encoder.dim)
        encoder.settings = dataclasses.replace(encoder.settings, truncate_dim=truncate_dim)
    return encoder


def _refuse_zeros(weights: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse a model whose weights are zeros, for example because its file was never filled.

    Raises:
        CheckpointError: all vectors of tokens, or all weights of a layer after pooling, are zero.
    """
    for name, tensor in weights.items():
        decides = "word_embeddings" in name or name.endswith("linear.weight")
        # The first rows decide for most models, so that the whole large table is rarely read.
        if decides and not tensor[:100].any() and not tensor.any():
            raise CheckpointError(
                f"{folder}: all numbers of {name} are 0, so all texts would have the same"
                " vector; download the model or train it again"
            )


def choose_device(name: str | None = None) -> torch.device:
    """Return the device of that name; by default the first GPU, or the CPU if there is none.

    Raises:
        ConfigError: there is no such device here.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # A device proves unusable only when a tensor is put on it. A torch that was built without CUDA
    # raises an AssertionError.
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        # torch's message continues with a list of all kinds of devices
        reason = str(error).splitlines()[0][:100]
        raise ConfigError(f"device {name!r} cannot be used ({reason}); use cpu") from error
    return torch.device(name)
