"""Schemas of the files of a model folder: type, sign and size of every value that is read.

Model folders come from unknown sources, and their numbers become sizes of buffers, indices into
tables and lengths of loops, in compiled code too. So each file is checked once and completely when
it is read, and all later code can rely on this check. The dataclasses have the keys that this
library reads, each with its bounds; other keys are ignored, and null counts as a missing key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from interlingua.config import (
    AtLeast,
    Between,
    InsideFolder,
    Longest,
    ValueOrigin,
    convert_to_type,
    shorten_value,
)
from interlingua.corpus.forms.text_forms import TextForm
from interlingua.errors import CheckpointError, InterlinguaError

T = TypeVar("T")
# The upper bounds are far above the values of real models: they limit how much memory an untrusted
# file can make this library allocate.
VocabularySize = Annotated[int, Between(1, 10_000_000)]
HiddenSize = Annotated[int, Between(1, 65_536)]
NumLayers = Annotated[int, Between(0, 1_000)]
NumHeads = Annotated[int, Between(1, 1_024)]
IntermediateSize = Annotated[int, Between(0, 1_048_576)]
DropoutRate = Annotated[float, AtLeast(0, below=1)]
NumPositions = Annotated[int, Between(1, 10_000_000)]
NumTypes = Annotated[int, Between(0, 1_000)]
NormEps = Annotated[float, Between(1e-30, 1)]
TokenId = Annotated[int, Between(0, 10_000_000)]
RotaryBase = Annotated[float, Between(1, 1e12)]
Features = Annotated[int, Between(1, 1 << 20)]
"""Width of a linear layer; a larger number counts as damage of the file."""
Path = Annotated[str, InsideFolder()]
"""Path of a file or folder below the model folder; empty for the folder itself."""
BEFORE_POOLING = ("Transformer", "Pooling")
AFTER_POOLING = ("Dense", "Normalize")
"""Classes of sentence-transformers that may follow the pooling, see ``encoder/post_pooling.py``."""
ROLES = ("pad_token", "unk_token", "mask_token", "cls_token", "sep_token", "bos_token", "eos_token")


@dataclass(frozen=True, kw_only=True, slots=True)
class AnyObject:
    """A file of which this library reads no key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BackboneFile:
    """``config.json`` of the backbone, or of a table of token vectors."""

    model_type: str | None = None
    vocab_size: VocabularySize | None = None
    hidden_size: HiddenSize | None = None
    num_hidden_layers: NumLayers | None = None
    num_attention_heads: NumHeads | None = None
    intermediate_size: IntermediateSize | None = None
    hidden_act: str | None = None
    hidden_dropout_prob: DropoutRate | None = None
    attention_probs_dropout_prob: DropoutRate | None = None
    max_position_embeddings: NumPositions | None = None
    type_vocab_size: NumTypes | None = None
    layer_norm_eps: NormEps | None = None
    pad_token_id: TokenId | None = None
    position_embedding_type: str | None = None
    is_decoder: bool | None = None
    normalize: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotary:
    """Angles of rotary positions; scaled ones are not supported."""

    rope_theta: RotaryBase | None = None
    rope_type: Literal["default"] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RotaryFile:
    """Additional keys of families with rotary positions."""

    rope_parameters: Rotary | None = None
    rope_scaling: None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JinaBertFile:
    """Additional keys of JinaBERT, relative to BERT."""

    feed_forward_type: Literal["geglu", "reglu", "original"] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JinaBertQKNormFile:
    """Additional keys of JinaBERT's form with norms of queries and keys."""

    feed_forward_type: Literal["geglu", "reglu"] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RotaryByLayer:
    """Rotary bases of layers with full attention, and of layers with a window."""

    full_attention: Rotary | None = None
    sliding_attention: Rotary | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModernBertFile:
    """Additional keys of ModernBERT-shaped models."""

    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    norm_bias: bool | None = None
    mlp_dropout: DropoutRate | None = None
    attention_dropout: DropoutRate | None = None
    hidden_activation: str | None = None
    norm_eps: NormEps | None = None
    layer_types: (
        Annotated[tuple[Literal["full_attention", "sliding_attention"], ...], Longest(1_000)] | None
    ) = None
    global_attn_every_n_layers: Annotated[int, Between(1, 1_000)] | None = None
    local_attention: Annotated[int, Between(2, 20_000_000)] | None = None
    global_rope_theta: RotaryBase | None = None
    local_rope_theta: RotaryBase | None = None
    rope_parameters: RotaryByLayer | None = None
    rope_scaling: None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DistilBertFile:
    """Additional keys of DistilBERT-shaped models."""

    dim: HiddenSize | None = None
    n_layers: NumLayers | None = None
    n_heads: NumHeads | None = None
    hidden_dim: IntermediateSize | None = None
    activation: str | None = None
    dropout: DropoutRate | None = None
    attention_dropout: DropoutRate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ElectraFile:
    """Additional keys of ELECTRA-shaped models."""

    embedding_size: HiddenSize | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnyModelFile:
    """``config.json`` of a model that is a graph, of any architecture."""

    model_type: str | None = None
    max_position_embeddings: Annotated[int, Between(1, 2**40)] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """An entry of ``modules.json``."""

    type: str
    path: Path


Modules = Annotated[tuple[Module, ...], Longest(100)]
"""``modules.json``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DenseFile:
    """``config.json`` of a ``Dense`` module."""

    in_features: Features
    out_features: Features
    bias: bool | None = None
    activation_function: str | None = None
    use_residual: bool | None = None
    module_input_name: str | None = None


RangeList = Annotated[tuple[Annotated[float, Between(-1e30, 1e30)], ...], Longest(65_536)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranges:
    """The smallest and the largest value of each element of vectors of one width."""

    minimum: RangeList
    maximum: RangeList


RangesByWidth = dict[str, Ranges]
"""``int8_ranges.json``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolingFile:
    """``1_Pooling/config.json``."""

    pooling_mode: str | Annotated[tuple[str, ...], Longest(20)] | None = None
    include_prompt: bool | None = None
    word_embedding_dimension: HiddenSize | None = None
    embedding_dimension: HiddenSize | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitsFile:
    """``sentence_bert_config.json``."""

    max_seq_length: NumPositions | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSettings:
    """Keys that this library adds to ``config_sentence_transformers.json``."""

    include_special: bool | None = None
    matryoshka_dims: Annotated[tuple[HiddenSize, ...], Longest(1_000)] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptsFile:
    """``config_sentence_transformers.json``."""

    prompts: dict[str, str | None] | None = None
    default_prompt_name: str | None = None
    truncate_dim: HiddenSize | None = None
    __version__: AnyObject | None = None
    interlingua: OwnSettings | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialToken:
    """A special token with its options."""

    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerFile:
    """``tokenizer_config.json`` and ``special_tokens_map.json``; a field for each of ``ROLES``."""

    model_max_length: Annotated[float, Between(1, 1e40)] | None = None
    pad_token: str | SpecialToken | None = None
    unk_token: str | SpecialToken | None = None
    mask_token: str | SpecialToken | None = None
    cls_token: str | SpecialToken | None = None
    sep_token: str | SpecialToken | None = None
    bos_token: str | SpecialToken | None = None
    eos_token: str | SpecialToken | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyFile:
    """``vocabulary.json``."""

    special_tokens: dict[str, str]
    language_tags: dict[str, str]
    pre_tokenizer: str
    text_forms: Annotated[tuple[TextForm, ...], Longest(5)] | None = None
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardsFile:
    """``model.safetensors.index.json``."""

    weight_map: dict[str, Path]


def read_file(
    kind: type[T],
    content: Any,
    path: Any,
    *,
    error: type[InterlinguaError] = CheckpointError,
    remedy: str = "download the model again",
) -> T:
    """Check the content of a file, and return it as a dataclass.

    Args:
        kind: one of the types of this module.
        content: the parsed content.
        path: of the file.
        error: class of the error.
        remedy: what to do about a damaged file.

    Raises:
        CheckpointError: a value has a wrong type or size; the message names the key, the value, and
            the expected type or size.
    """
    origin = ValueOrigin(place=str(path), error=error, remedy=f"; {remedy}", is_foreign=True)
    return convert_to_type(kind, content, origin)


def check_modules(modules: Sequence[tuple[str, str]], before: Sequence[str], folder: Any) -> None:
    """Refuse modules of other libraries, unsupported ones, and those in another order.

    Args:
        modules: folder of each module and its class, with the package.
        before: classes up to the pooling, each of which may occur at most once; the first class
            must occur.
        folder: of the model.

    Raises:
        CheckpointError: there are such modules, or none at all.
    """
    supported = (*before, *AFTER_POOLING)
    ranks = []
    for _, kind in modules:
        package, _, name = kind.partition(".")
        name = name.rpartition(".")[2]
        if package != "sentence_transformers" or name not in supported:
            # Name the full path of a class from another library, without quotes.
            foreign = shorten_value(kind)[1:-1]
            if package == "sentence_transformers":
                foreign = name
            raise CheckpointError(
                f"{folder}: module {foreign} is not supported; use a model with these modules of"
                f" sentence-transformers: {', '.join(supported)}"
            )
        # Modules after the pooling share a rank, because they may be in any order.
        ranks.append(min(supported.index(name), len(before)))
    early = [rank for rank in ranks if rank < len(before)]
    # The first class must occur, the order must be right, and no class may occur twice.
    if early[:1] != [0] or ranks != sorted(ranks) or len(set(early)) < len(early):
        listed = ", ".join(kind.rpartition(".")[2] for _, kind in modules) or "none"
        raise CheckpointError(
            f"{folder}: modules.json: expected {', '.join(before)}, then any of"
            f" {', '.join(AFTER_POOLING)}, found {listed[:100]}; download the model again"
        )
