"""The configuration of a training run: six TOML sections as frozen dataclasses.

Each section checks its own numbers when it is made, so that a mistake is reported before any data
is read. Reading and writing are at the end of the module; [method] is read in two steps, since its
schema depends on the method it names.

Options have the same names as in Hugging Face's ``TrainingArguments`` if they mean the same. A
number of steps may be a fraction below 1, which means that share of the whole run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from interlingua.config import (
    MANY,
    NEARLY_ONE,
    TINY,
    Above,
    AtLeast,
    Between,
    CheckedSettings,
    PathText,
    apply_override,
    config_to_toml,
    from_mapping,
    load_toml,
    to_mapping,
)
from interlingua.config.method_options import read_options
from interlingua.config.registry import METHODS, resolve_name
from interlingua.errors import ConfigError
from interlingua.methods.matryoshka import Matryoshka
from interlingua.storage.files import PathLike
from interlingua.training.feeds.data_config import DataConfig
from interlingua.vocabulary.model_files import (
    DropoutRate,
    HiddenSize,
    IntermediateSize,
    NumHeads,
    NumLayers,
    NumPositions,
)

FOR_ALL_METHODS = ("matryoshka", "matryoshka_weights")
"""Keys of [method] besides the method's own."""
LENGTHS = ("max_steps", "num_train_epochs", "budget_seconds")
_LEARNING_RATE = 3e-4
FINE_TUNING_RATE = 5e-5
"""Default learning rates: from scratch, and of a pretrained encoder."""
_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
)
OF_ANY_BACKBONE = ("attention_probs_dropout_prob",)
"""Settings that can replace a pretrained backbone's own settings in training."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig(CheckedSettings):
    """[encoder]: a preset to train from scratch, or a pretrained backbone."""

    preset: str | None = None
    """ems-base (the paper's), ems-small or ems-tiny."""
    path: PathText | None = None
    """A pretrained backbone: folder, ``mini`` or ``hf:owner/name``. The corpus must have its
    vocabulary."""
    pooling: Literal["cls", "mean", "max"] | None = None
    """Pooling of token states to a sentence vector; default: mean, or the pretrained model's
    own."""
    dense: bool = False
    """A new linear layer behind pooling: at first the identity, or the least-squares map to a bank
    of teachers."""
    freeze_embeddings: bool = False
    """Do not train the token vectors. They are most of a small model's weights, and then need no
    optimizer state."""
    initialization: Literal["torch", "bert"] | None = None
    """Weights from scratch: torch's own with N(0, 1) embeddings as in EMS (default), or BERT's N(0,
    0.02)."""
    hidden_size: HiddenSize | None = None
    """Width D of the hidden states."""
    num_hidden_layers: NumLayers | None = None
    """Transformer layers."""
    num_attention_heads: NumHeads | None = None
    """Heads per layer; must divide ``hidden_size``."""
    intermediate_size: IntermediateSize | None = None
    """Width of the feed-forward block."""
    hidden_act: str | None = None
    """gelu, gelu_new (its tanh formula), relu, silu or tanh."""
    hidden_dropout_prob: DropoutRate | None = None
    """Probability of zeroing an activation."""
    attention_probs_dropout_prob: DropoutRate | None = None
    """Probability of zeroing an attention weight in training; it replaces a pretrained backbone's
    own value."""
    max_position_embeddings: NumPositions | None = None
    """Rows of the position table."""

    def __post_init__(self) -> None:
        if (self.preset is None) == (self.path is None):
            raise ConfigError(
                "encoder: expected either preset (train from scratch) or path (a pretrained"
                " backbone); set one of them"
            )
        fixed = [name for name in self.sizes() if name not in OF_ANY_BACKBONE]
        if self.initialization:
            fixed.append("initialization")
        if self.path is not None and fixed:
            raise ConfigError(
                f"encoder: {fixed[0]} cannot be changed in a pretrained backbone; remove it"
            )

    def sizes(self) -> dict[str, Any]:
        """Return the sizes that are set here and override the preset's."""
        return {name: getattr(self, name) for name in _SIZES if getattr(self, name) is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodConfig(CheckedSettings):
    """[method]: a name of ``registry.METHODS``, and that method's own options."""

    name: str
    """The method, e.g. ems, or ``package.module:Class``."""
    options: Any
    """The method's own options, next to its name; see the sections below."""
    matryoshka: tuple[Annotated[int, AtLeast(1)], ...] = ()
    """Widths to which embeddings can be cut, the full width first, such as [384, 256, 128, 64]. The
    loss is computed for each of these prefixes, see docs/methods/matryoshka.md; () = only whole
    embeddings."""
    matryoshka_weights: tuple[Annotated[float, Above(0)], ...] = ()
    """Weight of the loss of each width, in the same order; () = 1 each."""

    def __post_init__(self) -> None:
        if self.matryoshka:
            # raises if the widths are not valid
            Matryoshka(dims=self.matryoshka, weights=self.matryoshka_weights)
        elif self.matryoshka_weights:
            raise ConfigError(
                "matryoshka_weights has no effect without matryoshka; remove matryoshka_weights"
            )

    @property
    def prefixes(self) -> Matryoshka | None:
        """The widths with their weights, if there are any."""
        if not self.matryoshka:
            return None
        return Matryoshka(dims=self.matryoshka, weights=self.matryoshka_weights)

    def to_mapping(self) -> dict[str, Any]:
        """Return the section as in a file: this method's options and those of all methods."""
        # lists, which TOML has, in place of tuples; empty ones are the default and left out
        for_all = {name: value for name in FOR_ALL_METHODS if (value := list(getattr(self, name)))}
        return {"name": self.name, **for_all, **to_mapping(self.options)}


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig(CheckedSettings):
    """[optimizer]: the optimizer and its settings."""

    MEANT_BY: ClassVar[Mapping[str, str]] = {"lr": "learning_rate", "type": "name"}
    """Keys of other tools, and our names of them."""

    name: Literal["adam", "adamw", "lars"] = "adamw"
    """adam adds weight decay to the gradient (coupled L2), adamw subtracts it from the weight; lars
    adds it to the gradient and scales each weight matrix's step to the matrix's norm."""
    learning_rate: Annotated[float, Between(TINY, 1e38)] | None = None
    """Peak learning rate, per step; default: 3e-4 from scratch, and 5e-5 for a pretrained encoder,
    which forgets what it knows at higher ones."""
    learning_rate_steps: Annotated[int, Between(0, MANY)] = 0
    """Length of the run, in steps, that ``learning_rate`` is meant for: a run of K steps uses the
    rate learning_rate * learning_rate_steps / K. 0 = ``learning_rate`` is used unchanged."""
    betas: tuple[
        Annotated[float, Between(0, NEARLY_ONE)], Annotated[float, Between(0, NEARLY_ONE)]
    ] = (0.9, 0.999)
    """Decay per step of the averages of gradient and squared gradient; adam and adamw."""
    eps: Annotated[float, Between(TINY, 1)] = 1e-8
    """Added to the root of the squared gradient's average; adam and adamw."""
    weight_decay: Annotated[float, Between(0, 1e6)] = 0.01
    """Coefficient of the weight decay."""
    amsgrad: bool = False
    """Divide by the largest squared-gradient average so far; adam and adamw."""
    momentum: Annotated[float, Between(0, NEARLY_ONE)] = 0.9
    """Share of the last step that each step repeats; lars."""
    trust_coefficient: Annotated[float, Between(TINY, 1e6)] = 1e-3
    """Length of a weight matrix's step before momentum, divided by the matrix's norm and by the
    learning rate; lars."""
    decay_bias_and_norm: bool | None = None
    """Apply weight decay (and, with lars, the scaling) also to biases and LayerNorms; default:
    true, but false with lars."""

    def __post_init__(self) -> None:
        # A user would believe that an option had an effect although nothing reads it.
        foreign: tuple[str, ...] = ("momentum", "trust_coefficient")
        if self.name == "lars":
            foreign = ("betas", "eps", "amsgrad")
        for key in foreign:
            if _is_changed(self, key):
                raise ConfigError(f"optimizer: {key} has no effect with {self.name}; remove it")

    @property
    def rate(self) -> float:
        """The peak learning rate, before ``learning_rate_steps``."""
        if self.learning_rate is None:
            return _LEARNING_RATE
        return self.learning_rate


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleConfig(CheckedSettings):
    """[schedule]: the learning rate by step, see ``optimization/schedules.py``."""

    name: Literal["constant", "linear", "cosine", "ems", "ramp"] = "linear"
    """Schedule after the warm-up: constant, linear to 0, cosine to 0, or EMS's slow cosine (90 %
    left at the end); ramp: the warm-up is as long as the run, as in MEXMA."""
    warmup_steps: Annotated[float, Between(0, MANY)] = 0.1
    """Steps of linear warm-up, or a share of the run; ramp takes none, as its warm-up is the
    run."""
    warmup_start: Annotated[float, Between(0, 1)] | None = None
    """Learning rate in step 0, as a share of the peak (0 as in BYOL, 0.1 as in MEXMA's code); the
    peak is then reached in step ``warmup_steps``. Default: the peak is reached in the last step of
    the warm-up, and no step has a learning rate of 0."""

    def __post_init__(self) -> None:
        _check_steps("schedule", warmup_steps=self.warmup_steps)
        if self.name == "ramp" and _is_changed(self, "warmup_steps"):
            raise ConfigError(
                "schedule: warmup_steps has no effect with ramp, which warms up during the whole"
                " run; remove it"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig(CheckedSettings):
    """[run]: output folder, length, device, and the files to keep."""

    MEANT_BY: ClassVar[Mapping[str, str]] = {
        "batch_size": "global_batch_size",
        "per_device_train_batch_size": "micro_batch_size",
        "epochs": "num_train_epochs",
        "steps": "max_steps",
        "budget": "budget_seconds",
    }
    """Keys of other tools, and our names of them."""

    output: Path
    """Folder of the run."""
    seed: int = 0
    """Seed of initial weights, batches and dropout."""
    max_steps: Annotated[int, Between(1, MANY)] | None = None
    """Optimizer steps of the whole run. Set this, or one of the next two options, which the run
    converts to steps at the start."""
    num_train_epochs: Annotated[float, Above(0, 1e9)] | None = None
    """Passes over the corpus."""
    budget_seconds: Annotated[float, Above(0, 1e9)] | None = None
    """Wall time of the whole run, evaluations included; the run measures the time of some first
    steps and then undoes these steps."""
    stop_at_budget: bool = False
    """End when the time of budget_seconds is over, even if the machine has become slower. The
    learning rate then follows the time if the steps are late. Two such runs have different results.
    Default: make all steps, however long they take."""
    global_batch_size: Annotated[int, Between(1, 2**31)] = 128
    """Pairs (questions, for retrieval) per step, over all processes and accumulated
    micro-batches."""
    micro_batch_size: Annotated[int, Between(1, 2**31)] | None = None
    """Pairs in one forward pass of one process; in-batch negatives are within it. Default: a
    process's share."""
    gradcache_sentences: Annotated[int, Between(1, 2**31)] | None = None
    """Number of sentences whose encoder activations are held at a time, for more in-batch negatives
    than fit into memory. Each pass is computed twice, with the same gradients. Default: all
    sentences, computed once."""
    gradient_checkpointing: bool = False
    """Keep only the input of each transformer layer, and compute its activations again in the
    backward pass. This takes a fraction of the memory and a third more time, with the same
    gradients."""
    compile: bool = False
    """Compile the operations between matrix products, and the cross-entropy over the vocabulary
    (torch.compile), for GPUs. This takes a minute at the start; afterwards there are fewer passes
    over memory, and states between layers are bfloat16. Results are rounded differently."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """bf16 = autocast with float32 weights; fp16 = the same with loss scaling, for GPUs without
    bf16 such as V100; auto = bf16 on a GPU that supports it, fp16 on other GPUs, and on a CPU the
    faster of bf16 and fp32 in a short trial. Of several processes the first one chooses."""
    executor: Literal["auto", "kernel", "torch", "kernel-onednn", "torch-onednn"] = "auto"
    """Executor between matrix products on a CPU: kernel = compiled passes if they run here and
    support the layer, else torch; torch = torch's own operations. With -onednn the products of
    float32 matrices are those of oneDNN, if they are as exact as torch's own. auto = the fastest in
    a short trial. Of several processes the first one chooses."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto = cuda where there is one."""
    devices: Annotated[int, Between(1, 256)] = 1
    """Processes, one per GPU (on the CPU: per group of cores), or what torchrun or srun has
    started."""
    strategy: Literal["ddp", "fsdp"] = "ddp"
    """Strategy of several processes: ddp = each has all weights; fsdp = weights and optimizer are
    sharded (FSDP2)."""
    threads: Annotated[int, Between(1, 1024)] | None = None
    """CPU threads of a process; default: torch's."""
    deterministic: bool = False
    """On a GPU use only algorithms that give the same bytes each time; some of them are slower. On
    the CPU all algorithms give the same bytes."""
    max_grad_norm: Annotated[float, Between(TINY, 1e38)] | None = None
    """Gradients are scaled down to this norm; default: never."""
    logging_steps: Annotated[float, Between(TINY, MANY)] = 10
    """Steps between two records in metrics.jsonl, or a share of the run."""
    eval_steps: Annotated[float, Between(TINY, MANY)] = 0.1
    """Steps between two evaluations, or a share of the run."""
    save_steps: Annotated[float, Between(TINY, MANY)] = 0.1
    """Steps between two checkpoints, or a share of the run."""
    save_total_limit: Annotated[int, Between(1, MANY)] = 2
    """Number of newest checkpoints that are kept; that of the best evaluation is kept in
    addition."""
    metric_for_best_model: str = "valid_loss"
    """Measure of the evaluation that decides which model is copied to best/."""
    greater_is_better: bool | None = None
    """True if a larger value of this measure is better; default: true unless its name ends in
    "loss"."""
    early_stopping_patience: Annotated[int, Between(1, MANY)] | None = None
    """The run ends after this number of evaluations in a row without a better value; default: it
    continues to max_steps."""
    tensorboard: bool = False
    """Also write event files for TensorBoard (needs the extra of that name)."""

    def __post_init__(self) -> None:
        given = [value for name in LENGTHS if (value := getattr(self, name)) is not None]
        if self.stop_at_budget and self.budget_seconds is None:
            raise ConfigError(
                "run: stop_at_budget requires budget_seconds; set budget_seconds, or remove"
                " stop_at_budget"
            )
        # A started run with stop_at_budget has two lengths: its number of steps, and the budget.
        has_begun = (
            self.stop_at_budget and self.max_steps is not None and self.num_train_epochs is None
        )
        if len(given) != (2 if has_begun else 1):
            raise ConfigError(
                f"run: expected exactly one of {', '.join(LENGTHS)}; set one, and remove the others"
            )
        _check_steps(
            "run",
            logging_steps=self.logging_steps,
            eval_steps=self.eval_steps,
            save_steps=self.save_steps,
        )

    def accumulation(self, world_size: int) -> int:
        """Return the number of micro-batches of a process in a step.

        Raises:
            ConfigError: the batch cannot be divided evenly.
        """
        if self.micro_batch_size is None and self.global_batch_size % world_size:
            raise ConfigError(
                f"run: global_batch_size {self.global_batch_size} cannot be divided evenly among"
                f" {world_size} processes; use a multiple of {world_size}"
            )
        # 0 where there are more processes than rows
        micro = self.micro_batch_size or self.global_batch_size // world_size
        if micro == 0 or self.global_batch_size % (micro * world_size):
            fitting = [
                n
                for n in range(1, world_size)
                if micro and self.global_batch_size % (micro * n) == 0
            ]
            remedy = ""
            if fitting:
                remedy = f"; {', '.join(map(str, fitting))} processes would fit"
            raise ConfigError(
                f"run: global_batch_size {self.global_batch_size} is not a multiple of"
                f" micro_batch_size {micro} x {world_size} processes; change one of them{remedy}"
            )
        return self.global_batch_size // (micro * world_size)


def _is_changed(section: Any, key: str) -> bool:
    """Return whether a key of a section has another value than its default."""
    return bool(getattr(section, key) != type(section).__dataclass_fields__[key].default)


def _check_steps(section: str, **values: float) -> None:
    """Refuse numbers of steps that are neither whole nor a share of the run."""
    for name, value in values.items():
        if value >= 1 and value != int(value):
            raise ConfigError(
                f"{section}: {name}: expected a whole number of steps, or a share below 1, found"
                f" {value:g}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(CheckedSettings):
    """A whole run; a written file has its sections in this order."""

    data: DataConfig
    encoder: EncoderConfig
    method: MethodConfig
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    run: RunConfig

    def __post_init__(self) -> None:
        # [optimizer] does not know whether the encoder is pretrained. The rate is set here, so that
        # the run's config.toml contains it.
        if self.optimizer.learning_rate is None:
            rate = _LEARNING_RATE if self.encoder.path is None else FINE_TUNING_RATE
            object.__setattr__(
                self, "optimizer", dataclasses.replace(self.optimizer, learning_rate=rate)
            )

    @property
    def length(self) -> int:
        """Optimizer steps of the run, once they are fixed."""
        assert self.run.max_steps is not None
        return self.run.max_steps

    def to_mapping(self) -> dict[str, Any]:
        """Return nested dictionaries as in the file: the method's options next to its name."""
        mapping = to_mapping(self)
        mapping["method"] = self.method.to_mapping()
        return mapping

    def to_toml(self) -> str:
        """Return the file that ``load_train_config`` reads back to an equal config."""
        return config_to_toml(self.to_mapping())

    def replace_run(self, **changes: Any) -> TrainConfig:
        """Return the same config with some values of [run] changed."""
        return dataclasses.replace(self, run=dataclasses.replace(self.run, **changes))


def config_differences(
    a: Mapping[str, Any], b: Mapping[str, Any], *, ignore: frozenset[str] = frozenset()
) -> list[str]:
    """Return the keys in which two configs differ, with both values: ``"run.seed (0, 1)"``.

    Args:
        a: one config as a mapping; if the methods differ, some options exist on one side only.
        b: the other.
        ignore: keys that may differ.
    """
    flat_a = dict(_flat(a))
    flat_b = dict(_flat(b))
    keys = sorted((flat_a.keys() | flat_b.keys()) - ignore)
    return [
        f"{key} ({flat_a.get(key)}, {flat_b.get(key)})"
        for key in keys
        if flat_a.get(key) != flat_b.get(key)
    ]


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables, by keys such as ``run.seed``."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def load_train_config(path: PathLike, *, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read a run's TOML file.

    Args:
        path: the file.
        overrides: ``"section.key=value"`` strings. An override of the run's length replaces the
            length in the file, whichever of the three keys of a length the file uses.

    Raises:
        ConfigError: see ``interlingua.config.load_config``; also an unknown method.
    """
    return train_config_of_file(load_toml(path), path, overrides=overrides)


def train_config_of_file(
    table: dict[str, Any], path: PathLike, *, overrides: Sequence[str] = ()
) -> TrainConfig:
    """Build the config from the table of a run's TOML file; see ``load_train_config``.

    Args:
        table: the result of ``load_toml``; the overrides are set in it.
        path: of the file, for messages.
        overrides: see ``load_train_config``.
    """
    for override in overrides:
        apply_override(table, override)
    overridden = {text.partition("=")[0].strip() for text in overrides}
    chosen = {key for key in LENGTHS if f"run.{key}" in overridden}
    # A run has one length: ``--set run.max_steps=10`` drops the file's num_train_epochs.
    if chosen and isinstance(table.get("run"), dict):
        table["run"] = {
            key: value for key, value in table["run"].items() if key not in LENGTHS or key in chosen
        }
    return train_config_from(table, where=str(path))


def train_config_from(table: Mapping[str, Any], *, where: str = "config") -> TrainConfig:
    """Build the config from nested mappings.

    [method] is read as the ``Config`` of the method it names.

    Raises:
        ConfigError: see ``load_train_config``.
    """
    sections = dict(table)
    method = sections.get("method")
    if not isinstance(method, Mapping) or not isinstance(method.get("name"), str):
        raise ConfigError(
            f"{where}: [method] has no name; use one of: {', '.join(sorted(METHODS))}"
        )
    # In the file all keys of [method] are in one table; here the method's own are separated from
    # those of all methods, and read by the schema of the method.
    for_all = {key: method[key] for key in ("name", *FOR_ALL_METHODS) if key in method}
    options = {key: value for key, value in method.items() if key not in for_all}
    try:
        schema = resolve_name(METHODS, method["name"]).Config
    except ConfigError as error:
        raise ConfigError(f"{where}: method.name: {error}") from error
    read = read_options(schema, options, where=f"{where}: method")
    sections["method"] = {**for_all, "options": read}
    return from_mapping(TrainConfig, sections, where=where)
