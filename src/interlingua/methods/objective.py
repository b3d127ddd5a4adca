"""The base class of all training objectives.

An objective is a module that owns everything a paper trains: the encoder, the heads and teachers
that only training needs, and the loss. The training loop does not depend on the method. It calls
the objective on a micro-batch, differentiates ``LossOutput.loss``, makes the optimizer's step and
calls ``after_step``; in the end it calls ``save``. The loop sets two attributes that a single
process can't know: ``total_steps`` and ``all_gather``.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from interlingua.batches.feeds import FeedName, PreparedBatch
from interlingua.batches.masking import LabeledTokens, MaskedTokens, mlm_mask
from interlingua.batches.sentences import Meanings
from interlingua.batches.tokens import TokenBatch
from interlingua.batches.written_forms import FormsRequest, WrittenForms
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.masked_lm import linear_cross_entropy
from interlingua.methods.heads.token_heads import MaskedTokenHead
from interlingua.methods.matryoshka import Matryoshka
from interlingua.storage.files import PathLike

LabelKind = Literal["nli", "sts"]
Term = Float[Tensor, ""] | Mapping[int, Float[Tensor, ""]]
"""A term of a loss. In a Matryoshka run: the term of each prefix of the embeddings, by width."""


class LossOutput(NamedTuple):
    """A loss and its terms."""

    loss: Float[Tensor, ""]
    """The value to minimize, in nats."""
    terms: dict[str, Float[Tensor, ""]]
    """The weighted terms by name, without gradient unless ``keeps_graph``; they sum to ``loss``."""


class Objective(nn.Module, ABC):
    """A paper's training objective.

    It is called once per micro-batch; every encoder pass of the step happens inside.

    Args:
        config: an instance of ``Config``; if it has a field ``x_weight``, this is the weight of
            the term ``x``.
        encoder: the model to train, and the only part that is exported.
    """

    Config: ClassVar[type]
    feeds: ClassVar[tuple[FeedName, ...]] = ("parallel",)
    """The feeds of a step; with several, ``forward`` gets a dict of batches by feed."""
    label_kind: ClassVar[LabelKind | None] = None
    """The kind of labels of its labeled feed: classes (nli) or scores (sts)."""
    parts: tuple[str, ...] = ()
    """Parts of the loss, backpropagated in turn to save memory; ``forward`` takes ``part=``, None
    means all of them."""
    nested_terms: ClassVar[tuple[str, ...]] = ()
    """Terms that a Matryoshka run computes for each prefix of the embeddings, with ``nested``; if
    there are none, a Matryoshka run is refused."""
    no_prefixes: ClassVar[str] = "the method has no term that supports prefixes of embeddings"
    """The reason in the error message if prefixes are not supported."""
    matryoshka: Matryoshka | None = None
    """The prefixes, if the run has some; see ``nest``."""
    takes_forms: ClassVar[bool] = False
    """True if the method reads sentences through ``as_written``, so that a run can give it other
    forms of the sentences."""
    written_forms: WrittenForms | None = None
    """Function that puts some of the sentences into another form before they are encoded; see
    ``write_forms``."""
    in_parts: ClassVar[bool] = True
    """True if all encoder passes are calls of ``encoder(...)`` or ``encoder.tokens(...)``, so that
    GradCache can split them."""
    encoder: Encoder
    reads_all_weights: bool = True
    """True if every trained weight has a gradient in every step; a run with several processes
    waits for all these gradients."""
    keeps_graph: bool = False
    """True if the terms can be differentiated one by one."""
    total_steps: int = 1
    """Optimizer steps of the whole run; set by the training loop."""
    all_gather: Callable[[Tensor], Tensor]
    """Concatenation of a (B, ...) tensor over the processes; the identity outside of training."""

    def __init__(self, config: Any, encoder: Encoder) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder
        self.all_gather = itself

    @classmethod
    def feeds_for(cls, config: Any) -> tuple[FeedName, ...]:
        """Return the feeds that an objective of this config takes.

        They are ``feeds`` unless they depend on options.
        """
        return cls.feeds

    @classmethod
    def label_kind_for(cls, config: Any) -> LabelKind | None:
        """Return the kind of labels that an objective of this config learns from.

        It is ``label_kind`` unless it depends on options.
        """
        return cls.label_kind

    @classmethod
    def with_languages(cls, config: Any, languages: tuple[str, ...]) -> Any:
        """Return the config with the corpus's languages if it takes languages and names none."""
        named = [getattr(config, key) for key in ("languages", "targets") if hasattr(config, key)]
        if not named or any(named):
            return config
        try:
            return dataclasses.replace(config, languages=languages)
        except ConfigError:
            # With these options no language is predicted, and naming some would be refused.
            return config

    def prepare(self, batch: Any) -> Any:
        """Return the inputs of ``forward`` besides sentences: masks, joins, indices.

        It is a pure function of the batch and runs on the host. A run calls it for the steps to
        come, in the thread that makes their batches; so it must use no weights and gather nothing.
        None = the batch is all that is needed.
        """
        return None

    def prepared(self, batch: Any) -> Any:
        """Return the batch together with the result of ``prepare``, if it has one.

        A method that implements ``prepare`` calls this first in its ``forward``, so that it accepts
        both a batch and a prepared one.
        """
        if isinstance(batch, PreparedBatch):
            return batch  # a run has made it in advance
        inputs = self.prepare(batch)
        return batch if inputs is None else PreparedBatch(batch, inputs)

    def __call__(self, *arguments: Any, **keywords: Any) -> LossOutput:
        """Call ``forward``, and refuse a result that is not a ``LossOutput`` of scalars.

        Every call goes through this method: a call of the objective itself, of a term of a
        combination, or of a wrapper for several processes.

        Raises:
            ConfigError: ``forward`` returned something else.
        """
        output: LossOutput = super().__call__(*arguments, **keywords)
        if is_loss_output(output):
            return output
        raise ConfigError(
            f"method {type(self).__name__}: forward returned {describe_output(output)}, expected"
            " a LossOutput; end forward with: return self.weighted(NAME=LOSS), where LOSS is a"
            " scalar, such as a mean"
        )

    @abstractmethod
    def forward(self, batch: Any) -> LossOutput:
        """Compute the loss of a micro-batch, prepared or not."""

    def save(self, folder: PathLike) -> None:
        """Write the model directory that is used after training.

        An existing directory is replaced as a whole.
        """
        self.encoder.save(folder)

    def after_step(self, step: int) -> None:
        """Update state after an optimizer step, for example move a teacher."""

    def notes(self) -> list[str]:
        """Return lines for the user at the start of a run.

        For example, they show settings that depend on its length.
        """
        return []

    @property
    def evaluated(self) -> Any:
        """The model that evaluators get: the exported model, which is the encoder by default."""
        return self.encoder

    def masking(self, **options: Any) -> partial[MaskedTokens]:
        """Return ``mlm_mask`` with the encoder's vocabulary.

        Raises:
            ConfigError: the vocabulary has no mask.
        """
        vocabulary = self.encoder.vocabulary
        return partial(
            mlm_mask,
            mask_id=vocabulary.mask_id,
            vocab_size=vocabulary.size,
            special_ids=vocabulary.special_ids,
            **options,
        )

    def mean_of_tokens(self, losses: Float[Tensor, " n"]) -> Float[Tensor, ""]:
        """Return the share of this process in a mean over the tokens of all processes.

        The losses of the processes are averaged later, each with the same weight. But masks and
        lengths differ, and each process r of W has its own number of tokens n_r. So each process
        multiplies the sum of its losses by W / sum(n). The average of the results over the W
        processes is the mean over all tokens.
        """
        counts = self.all_gather(torch.full((1,), len(losses), device=losses.device))
        # If no process has masked a token, this is 0 / 1, not 0 / 0.
        return losses.sum() * (len(counts) / counts.sum().clamp(min=1))

    def masked_token_loss(
        self, head: MaskedTokenHead, states: Float[Tensor, "t d"], labeled: LabeledTokens
    ) -> Float[Tensor, ""]:
        """Compute the mean -log softmax(E h + b) of the labeled tokens; E: word embeddings."""
        words = self.encoder.backbone.word_embeddings.weight  # E
        return self.mean_of_tokens(linear_cross_entropy(*head(states, labeled, words)))

    def choose_gather(
        self, negatives: Literal["processes", "micro_batch"]
    ) -> Callable[[Tensor], Tensor]:
        """Return a function that gathers the vectors of all processes, or of this one only."""
        if negatives == "processes":
            return self.all_gather
        return itself

    def meanings(self, a: TokenBatch, b: TokenBatch) -> Meanings | None:
        """Return the meanings of the pairs for ``repeats``; None without ``exclude_repeats``."""
        if not self.config.exclude_repeats:
            return None
        return Meanings.of(a, b)

    def repeats(
        self, meanings: Meanings | None, gather: Callable[[Tensor], Tensor]
    ) -> Bool[Tensor, "n n"] | None:
        """Return which pairs have the same meaning and are no negatives of one another.

        None without ``exclude_repeats``.
        """
        if meanings is None:
            return None
        return meanings.gathered(gather).are_same(self.encoder.device)

    def need_others(self, count: int, what: str, key: str = "run.global_batch_size") -> None:
        """Refuse a batch of one, because a contrast needs others to compare with.

        Args:
            count: number of items; those of all processes if the processes share their negatives.
            what: name of the items.
            key: the config key that sets the number of items.
        """
        if count < 2:
            raise ConfigError(
                f"a micro-batch of one {what} has no negatives; raise {key} or run.micro_batch_size"
            )

    def as_written(self, sentences: TokenBatch, batch: Any) -> TokenBatch:
        """Return sentences as the encoder reads them: some in another form, if a run asks for that.

        Look-ups and teachers use the original sentences.

        Args:
            sentences: part of a batch.
            batch: the batch of a feed, with its seed and step.
        """
        if self.written_forms is None:
            return sentences
        return self.written_forms(sentences, seed=batch.seed, step=batch.step)

    def write_forms(self, request: FormsRequest) -> None:
        """Encode a share of the sentences in another form in all later calls.

        Args:
            request: which share, and which forms.

        Raises:
            ConfigError: the method reads tokens one by one, or a form is unknown.
        """
        # A combination holds several objectives. Objectives that predict tokens are unchanged.
        objectives = [
            module
            for module in self.modules()
            if isinstance(module, Objective) and module.takes_forms
        ]
        if not objectives:
            raise ConfigError(
                "data.forms: the method does not support other forms of sentences; remove"
                " data.forms, or use a method of sentence vectors such as anchor"
            )
        forms = WrittenForms(self.encoder.vocabulary, request, max_tokens=self.encoder.max_tokens)
        for objective in objectives:
            objective.written_forms = forms

    def nest(self, matryoshka: Matryoshka) -> None:
        """Replace the loss of later calls by that of several prefixes of the embeddings.

        The saved model lists their widths.

        Args:
            matryoshka: the prefixes.

        Raises:
            ConfigError: the method has no terms that support prefixes, or these terms are switched
                off, or the largest width is not the encoder's.
        """
        # A combination holds several objectives. Those without nested terms are unchanged.
        objectives = [
            module
            for module in self.modules()
            if isinstance(module, Objective) and module.nested_terms
        ]
        if not objectives:
            raise ConfigError(
                f"matryoshka: {self.no_prefixes}; remove matryoshka, or use another method"
            )
        for objective in objectives:
            weights = {
                f"{name}_weight": getattr(objective.config, f"{name}_weight", 1.0)
                for name in objective.nested_terms
            }
            matryoshka.check(weights, objective.encoder.dim)
            objective.matryoshka = matryoshka
            for encoder in objective.exported:
                encoder.settings = dataclasses.replace(
                    encoder.settings, matryoshka_dims=matryoshka.dims
                )

    @property
    def exported(self) -> tuple[Encoder, ...]:
        """The encoders that are saved."""
        return (self.encoder,)

    def nested(
        self, loss: Callable[..., Float[Tensor, ""]], *embeddings: Float[Tensor, "_ d"]
    ) -> Term:
        """Compute a term that reads only sentence embeddings of the encoder.

        In a Matryoshka run, the result has one loss for each prefix.

        Args:
            loss: function of embeddings of any width; if it contains a head, the head reads
                ``full_width(prefix, self.encoder.dim)``.
            embeddings: those of the sentences, and the embeddings to compare them with.
        """
        if self.matryoshka is None:
            return loss(*embeddings)
        return self.matryoshka.losses(loss, *embeddings)

    def weight_of(self, term: str) -> tuple[str, float] | None:
        """Return the option that weighs a term, as a user sets it, and its value.

        Args:
            term: as ``LossOutput`` names it.

        Returns:
            None if the term has no such option and is not weighted.
        """
        name = term
        if self.matryoshka is not None:
            name = re.sub(r"_\d+$", "", term)  # the option is that of all prefixes
        weight = getattr(self.config, f"{name}_weight", None)
        if weight is None:
            return None
        return f"method.{name}_weight", float(weight)

    def weighted(self, **terms: Term) -> LossOutput:
        """Weigh the terms by the config's weights and add them up.

        Nested terms are named ``term_width``. If a term is not a tensor, the output contains only
        this term, and ``__call__`` refuses the output.
        """
        weighted: dict[str, Tensor] = {}
        for name, term in terms.items():
            of_term = term.values() if isinstance(term, Mapping) else (term,)
            if not all(isinstance(value, Tensor) for value in of_term):
                # A Python number has no gradient and cannot be detached below.
                refused: Any = {name: term}
                return LossOutput(torch.zeros(()), refused)
            # The option named after the term is its weight; without this option, the weight is 1.
            weight = getattr(self.config, f"{name}_weight", 1.0)
            if isinstance(term, Mapping):
                # one entry per width, so that the run's log shows how each prefix learns
                weighted |= {f"{name}_{dim}": weight * of_prefix for dim, of_prefix in term.items()}
            else:
                weighted[name] = weight * term
        loss: Any = sum(weighted.values())
        if self.keeps_graph:
            return LossOutput(loss, weighted)
        # Detached: terms that are kept for the log must not hold the memory of their graph.
        return LossOutput(loss, {name: term.detach() for name, term in weighted.items()})


def is_loss_output(output: Any) -> bool:
    """Check that an output is a ``LossOutput``, and its loss and terms are single numbers."""
    if not isinstance(output, LossOutput) or not isinstance(output.terms, Mapping):
        return False
    scalars = (output.loss, *output.terms.values())
    return all(isinstance(value, Tensor) and value.ndim == 0 for value in scalars)


def describe_output(output: Any) -> str:
    """Describe the value that ``forward`` returned instead of a ``LossOutput``."""
    if output is None:
        return "nothing"
    if isinstance(output, Tensor):
        return f"a tensor of shape {tuple(output.shape)}"
    if isinstance(output, LossOutput) and isinstance(output.terms, Mapping):
        for name, value in {"loss": output.loss, **output.terms}.items():
            if not isinstance(value, Tensor) or value.ndim:
                return f"for {name} {describe_output(value)}"
    return f"a {type(output).__name__}"


def need_a_loss(config: Any, *weights: str) -> None:
    """Refuse a loss if all its terms are switched off."""
    if not any(getattr(config, name) for name in weights):
        raise ConfigError(
            f"{' and '.join(weights)} are 0, so the method has no loss; set one of them above 0"
        )


def itself(tensor: Tensor) -> Tensor:
    """Gather from one process only."""
    return tensor
