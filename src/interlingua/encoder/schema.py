"""What the files of a model folder may say: type, sign and size of every value that is read.

Model folders come from strangers, and their numbers become sizes of buffers, indices into tables
and lengths of loops, in compiled code too. So each file is checked once, as a whole, when it is
read, and all later code can rely on it. Keys that this library does not read are ignored. A schema
is a small tree of kinds: ``whole(1, 1000)`` is a whole number in that range, ``ObjectOf`` an object
with known keys, ``Maybe`` lets ``null`` and a missing key pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from interlingua.corpus.text_forms import TEXT_FORMS
from interlingua.errors import CheckpointError
from interlingua.storage.json_text import refuse_surrogates

Problem = tuple[str, str, str]
"""The key, from the outermost one on; what stands there; and what was expected."""


class Kind(Protocol):
    """What a value may be."""

    def problem(self, value: Any, key: str) -> Problem | None:
        """The first thing that is wrong with a value, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """A value that passes a test of its own."""

    accepts: Callable[[Any], bool]
    expected: str

    def problem(self, value: Any, key: str) -> Problem | None:
        """See ``Kind``."""
        if self.accepts(value):
            return None
        return key, shown(value), self.expected


def whole(low: int, high: int) -> Plain:
    """A whole number."""
    # Not isinstance: True is an int, too.
    return Plain(
        lambda value: type(value) is int and low <= value <= high,
        f"a whole number from {low} to {high}",
    )


def number(low: float, high: float = math.inf, *, below: float = math.inf) -> Plain:
    """A number, whole or not; ``below`` is not in the range."""

    def accepts(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and low <= value <= high and value < below

    end = f"to {high:g}"
    if below < math.inf:
        end = f"to below {below:g}"
    return Plain(accepts, f"a number from {low:g} {end}")


def one_of(*texts: str) -> Plain:
    """One of a few texts."""
    return Plain(lambda value: isinstance(value, str) and value in texts, " or ".join(texts))


def _is_inside(value: Any) -> bool:
    # Neither absolute nor upwards, by the rules of any system: a backslash is Windows' slash, and a
    # path ends at a zero byte.
    return (
        isinstance(value, str)
        and not value.startswith("/")
        and "\\" not in value
        and "\0" not in value
        and ".." not in value.split("/")
    )


INSIDE = Plain(_is_inside, "a path inside of the model folder")
"""The path of a file or folder below the model folder; empty for the folder itself."""
FLAG = Plain(lambda value: isinstance(value, bool), "true or false")
ANYTHING = Plain(lambda value: True, "anything")
"""Any JSON."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text."""

    def problem(self, value: Any, key: str) -> Problem | None:
        """See ``Kind``."""
        if not isinstance(value, str):
            return key, shown(value), "a text"
        try:
            refuse_surrogates(value)
        except ValueError as error:
            return key, str(error), "a text"
        return None


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value of a kind, or null, or nothing."""

    kind: Kind

    def problem(self, value: Any, key: str) -> Problem | None:
        """See ``Kind``."""
        if value is None:
            return None
        return self.kind.problem(value, key)


@dataclass(frozen=True, slots=True)
class Either:
    """A value of one of several kinds."""

    kinds: tuple[Kind, ...]

    def problem(self, value: Any, key: str) -> Problem | None:
        """See ``Kind``."""
        found = [kind.problem(value, key) for kind in self.kinds]
        problems = [problem for problem in found if problem is not None]
        if len(problems) < len(found):
            return None
        # A dictionary keeps the order, and each expectation once.
        expectations = dict.fromkeys(expected for _, _, expected in problems)
        return key, shown(value), " or ".join(expectations)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values of a kind."""

    kind: Kind
    longest: int

    def problem(self, value: Any, key: str) -> Problem | None:
        """See ``Kind``."""
        expected = f"a list of at most {self.longest}"
        if not isinstance(value, list):
            return key, shown(value), expected
        if len(value) > self.longest:
            return key, f"a list of {len(value)}", expected
        # A generator, here and below: the first problem ends the search.
        return first_problem(
            self.kind.problem(item, f"{key}[{index}]") for index, item in enumerate(value)
        )


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys and with values of one kind."""

    kind: Kind

    def problem(self, value: Any, key: str) -> Problem | None:
        """See ``Kind``."""
        if not isinstance(value, dict):
            return key, shown(value), "an object"
        return first_problem(
            self.kind.problem(item, _below(key, name)) for name, item in value.items()
        )


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """An object with known keys; others are ignored. A key that is not there counts as null."""

    fields: Mapping[str, Kind]

    def problem(self, value: Any, key: str) -> Problem | None:
        """See ``Kind``."""
        if not isinstance(value, dict):
            return key, shown(value), "an object"
        return first_problem(
            kind.problem(value.get(name), _below(key, name)) for name, kind in self.fields.items()
        )


def first_problem(problems: Iterable[Problem | None]) -> Problem | None:
    """The first that is one."""
    return next((problem for problem in problems if problem is not None), None)


def shown(value: Any) -> str:
    """How a value stands in an error: in short."""
    # Python refuses to write whole numbers of thousands of digits.
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return "a number of dozens of digits"
    # In ASCII, so that a text can send nothing to the terminal that it would obey.
    text = ascii(value) if isinstance(value, str) else repr(value)
    if len(text) > 60:
        text = f"{text[:60]}..."
    return text


def fault(value: Any, kind: Kind) -> str | None:
    """What is wrong with the content of a file: the key, what stands there, what was expected."""
    problem = kind.problem(value, "")
    if problem is None:
        return None
    key, found, expected = problem
    return f"{key or 'the content'} is {found}, expected {expected}"


def check(value: Any, kind: Kind, path: Any) -> None:
    """Refuses a file with content of another kind.

    Raises:
        CheckpointError: see ``fault``.
    """
    if found := fault(value, kind):
        raise CheckpointError(f"{path}: {found}; fetch the model again")


def check_modules(modules: Sequence[tuple[str, str]], before: Sequence[str], folder: Any) -> None:
    """Refuses modules of other libraries, unsupported ones, and those in another order.

    Args:
        modules: folder and class, with its package, of each.
        before: classes up to the pooling, each there once at most and the first one at least.
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
            # Of another library the whole path, without its quotes.
            foreign = shown(kind)[1:-1]
            if package == "sentence_transformers":
                foreign = name
            raise CheckpointError(
                f"{folder}: module {foreign} is not supported; supported are"
                f" sentence-transformers' {', '.join(supported)}"
            )
        # Those after the pooling share a rank, since they may stand in any order.
        ranks.append(min(supported.index(name), len(before)))
    early = [rank for rank in ranks if rank < len(before)]
    # The first class is there, none comes before its turn, and none comes twice.
    if early[:1] != [0] or ranks != sorted(ranks) or len(set(early)) < len(early):
        listed = ", ".join(kind.rpartition(".")[2] for _, kind in modules) or "none"
        raise CheckpointError(
            f"{folder}: modules.json lists the modules {listed[:100]}; expected"
            f" {', '.join(before)}, then any of {', '.join(AFTER_POOLING)}; fetch the model again"
        )


def _below(key: str, name: str) -> str:
    """The key of a value within an object, without the quotes of its name."""
    bare_name = shown(name)[1:-1]
    if not key:
        return bare_name
    return f"{key}.{bare_name}"


OBJECT = ObjectOf({})
# The upper ends are far above any model's: they bound what a stranger's file makes us allocate.
SIZES: dict[str, Kind] = {
    "vocab_size": whole(1, 10_000_000),
    "hidden_size": whole(1, 65_536),
    "num_hidden_layers": whole(0, 1_000),
    "num_attention_heads": whole(1, 1_024),
    "intermediate_size": whole(0, 1_048_576),
    "hidden_dropout_prob": number(0, below=1),
    "attention_probs_dropout_prob": number(0, below=1),
    "max_position_embeddings": whole(1, 10_000_000),
    "type_vocab_size": whole(0, 1_000),
    "layer_norm_eps": number(1e-30, 1),
    "pad_token_id": whole(0, 10_000_000),
}
"""Of a backbone, wherever its shape comes from."""
BACKBONE = ObjectOf(
    {
        **{name: Maybe(kind) for name, kind in SIZES.items()},
        "model_type": Maybe(Text()),
        "hidden_act": Maybe(Text()),
        "position_embedding_type": Maybe(Text()),
        "is_decoder": Maybe(FLAG),
        "normalize": Maybe(FLAG),
    }
)
"""``config.json`` of the backbone, or of a table of token vectors."""
_BASE = Maybe(number(1, 1e12))
_ROTARY = Maybe(ObjectOf({"rope_theta": _BASE, "rope_type": Maybe(one_of("default"))}))
# Null or nothing: scaled positions, which change the angles, are not supported.
_ABSENT = Maybe(one_of())
ROTARY = ObjectOf({"rope_parameters": _ROTARY, "rope_scaling": _ABSENT})
"""Of families with rotary positions, besides what all have."""
JINA_BERT = ObjectOf({"feed_forward_type": Maybe(one_of("geglu", "reglu", "original"))})
"""Of JinaBERT, besides what BERT has."""
JINA_BERT_QK_NORM = ObjectOf({"feed_forward_type": Maybe(one_of("geglu", "reglu"))})
"""The same of its form with norms of queries and keys."""
MODERNBERT = ObjectOf(
    {
        **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias"), Maybe(FLAG)),
        **dict.fromkeys(("mlp_dropout", "attention_dropout"), Maybe(SIZES["hidden_dropout_prob"])),
        "hidden_activation": Maybe(Text()),
        "norm_eps": Maybe(SIZES["layer_norm_eps"]),
        "layer_types": Maybe(ListOf(one_of("full_attention", "sliding_attention"), longest=1_000)),
        "global_attn_every_n_layers": Maybe(whole(1, 1_000)),
        "local_attention": Maybe(whole(2, 20_000_000)),
        "global_rope_theta": _BASE,
        "local_rope_theta": _BASE,
        "rope_parameters": Maybe(
            ObjectOf({"full_attention": _ROTARY, "sliding_attention": _ROTARY})
        ),
        "rope_scaling": _ABSENT,
    }
)
"""Of ModernBERT-shaped models, besides what all have."""
DISTILBERT = ObjectOf(
    {
        "dim": Maybe(SIZES["hidden_size"]),
        "n_layers": Maybe(SIZES["num_hidden_layers"]),
        "n_heads": Maybe(SIZES["num_attention_heads"]),
        "hidden_dim": Maybe(SIZES["intermediate_size"]),
        "activation": Maybe(Text()),
        **dict.fromkeys(("dropout", "attention_dropout"), Maybe(SIZES["hidden_dropout_prob"])),
    }
)
"""Of DistilBERT-shaped models, besides what all have."""
ELECTRA = ObjectOf({"embedding_size": Maybe(SIZES["hidden_size"])})
"""Of ELECTRA-shaped models, besides what all have."""
ANY_CONFIG = ObjectOf(
    {"model_type": Maybe(Text()), "max_position_embeddings": Maybe(whole(1, 2**40))}
)
"""``config.json`` of a model that is a graph, of whatever architecture."""
MODULES = ListOf(ObjectOf({"type": Text(), "path": INSIDE}), longest=100)
"""``modules.json``."""
BEFORE_POOLING = ("Transformer", "Pooling")
AFTER_POOLING = ("Dense", "Normalize")
"""Classes of sentence-transformers that may stand after the pooling, see
``encoder/post_pooling.py``."""
MAX_FEATURES = 1 << 20
"""A wider layer than this is taken for a damaged file."""
DENSE = ObjectOf(
    {
        "in_features": whole(1, MAX_FEATURES),
        "out_features": whole(1, MAX_FEATURES),
        "bias": Maybe(FLAG),
        "activation_function": Maybe(Text()),
        "use_residual": Maybe(FLAG),
        "module_input_name": Maybe(Text()),
    }
)
"""``config.json`` of a ``Dense`` module."""
RANGES = MapOf(
    ObjectOf(dict.fromkeys(("minimum", "maximum"), ListOf(number(-1e30, 1e30), longest=65_536)))
)
"""``int8_ranges.json``."""
POOLING = ObjectOf(
    {
        "pooling_mode": Maybe(Either((Text(), ListOf(Text(), longest=20)))),
        "include_prompt": Maybe(FLAG),
        "word_embedding_dimension": Maybe(whole(1, 65_536)),
        "embedding_dimension": Maybe(whole(1, 65_536)),
    }
)
"""``1_Pooling/config.json``."""
LIMITS = ObjectOf({"max_seq_length": Maybe(whole(1, 10_000_000))})
"""``sentence_bert_config.json``."""
PROMPTS = ObjectOf(
    {
        "prompts": Maybe(MapOf(Maybe(Text()))),
        "default_prompt_name": Maybe(Text()),
        "truncate_dim": Maybe(whole(1, 65_536)),
        "__version__": Maybe(OBJECT),
        "interlingua": Maybe(
            ObjectOf(
                {
                    "include_special": Maybe(FLAG),
                    "matryoshka_dims": Maybe(ListOf(whole(1, 65_536), longest=1_000)),
                }
            )
        ),
    }
)
"""``config_sentence_transformers.json``."""
ROLES = ("pad_token", "unk_token", "mask_token", "cls_token", "sep_token", "bos_token", "eos_token")
_TOKEN = Maybe(Either((Text(), ObjectOf({"content": Text()}))))
TOKENIZER = ObjectOf(
    {
        "model_max_length": Maybe(number(1, 1e40)),
        **dict.fromkeys(ROLES, _TOKEN),
    }
)
"""``tokenizer_config.json`` and ``special_tokens_map.json``."""
VOCABULARY = ObjectOf(
    {
        "special_tokens": MapOf(Text()),
        "language_tags": MapOf(Text()),
        "pre_tokenizer": Text(),
        "text_forms": Maybe(ListOf(one_of(*TEXT_FORMS), longest=len(TEXT_FORMS))),
        "digest": Text(),
    }
)
"""``vocabulary.json``."""
SHARDS = ObjectOf({"weight_map": MapOf(INSIDE)})
"""``model.safetensors.index.json``."""
