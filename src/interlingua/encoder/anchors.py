"""Where a student's targets come from: a bank of stored teacher vectors, or a teacher that embeds each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.batches.sentences import meaning_groups, sentence_keys, take
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.altered_sentences import AlteredSentences
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.teacher_bank import BankRequest, TeacherBank
from interlingua.encoder.teachers import ModelTeacher, Teacher, VectorTeacher
from interlingua.errors import ConfigError
from interlingua.languages import resolve


class Negatives(NamedTuple):
    """What the students of a batch of pairs are contrasted with."""

    vectors: Float[Tensor, "n d"]
    """Of the teacher, of length 1."""
    same_sentence: Bool[Tensor, "b n"]
    """Which of them is of the pair's own sentence of the pivot language."""
    same_meaning: Bool[Tensor, "b n"]
    """Which of them translate the same as the pair, those of the same sentence among them."""
    pairs: Bool[Tensor, "b b"]
    """Which pairs of the batch say the same."""


class Anchors(nn.Module):
    """The teacher's vectors for batches of the student's tokens.

    Args:
        student: the encoder that learns; a copy of it is the teacher if none is named.
        teachers: folders, hub ids, or ``.npy`` files of ready vectors.
        prompts: text in front of what each reads; empty = none.
        pivot: language that the teachers read, any code.
        known_languages: of which translations have vectors of the teacher too.
        folder: of the bank; empty = in the run's folder.
        size: negatives of a step.
        every: steps between two windows of the bank.
    """

    def __init__(
        self,
        student: Encoder,
        teachers: Sequence[str],
        prompts: Sequence[str],
        *,
        pivot: str,
        known_languages: Sequence[str] = (),
        folder: str = "",
        size: int = 1 << 15,
        every: int = 100,
    ) -> None:
        super().__init__()
        self.pivot = resolve(pivot).code
        self.known = frozenset(resolve(name).code for name in known_languages)
        self.teachers, self.prompts = tuple(teachers), tuple(prompts) or ("",) * max(len(teachers), 1)
        self.request = BankRequest(folder=folder, size=size, every=every, pivot=self.pivot, translations=self.known)
        self.bank: TeacherBank | None = None
        self.names: AlteredSentences | None = None
        """Wants to know the bank's sentences, to take names from them."""
        self._vocabulary, self._dim = student.vocabulary, student.dim
        self.teacher: Encoder | None = None
        if len(self.teachers) < 2 and not self._is_matrix(*self.teachers):
            self.teacher = (Encoder.load(*self.teachers) if self.teachers else student.clone()).float()
            self.teacher.requires_grad_(False)
            self._reader(self.teacher, 0)  # what it can't read is refused at once

    def train(self, mode: bool = True) -> Anchors:
        """The teacher stays as it is evaluated, without dropout."""
        super().train(mode)
        if self.teacher is not None:
            self.teacher.eval()
        return self

    def open_teachers(self, *, max_tokens: int, dtype: Dtype = "float32") -> list[Teacher]:
        """The teachers, to fill a bank.

        Args:
            max_tokens: what the student's sentences are cut to.
            dtype: for models to compute in.
        """
        if self.teacher is not None:
            return [self._reader(self.teacher, 0, dtype)]
        opened: list[Teacher] = []
        for place, name in enumerate(self.teachers):
            if self._is_matrix(name):
                opened.append(VectorTeacher(name, self._vocabulary, pivot=self.pivot, max_tokens=max_tokens))
            else:
                opened.append(self._reader(Encoder.load(name), place, dtype))
        return opened

    def use_bank(self, bank: TeacherBank) -> None:
        """Takes the vectors from a bank from now on; the teacher is let go."""
        self.bank, self.teacher = bank, None

    @torch.no_grad()
    def vectors(self, batch: TokenBatch) -> Float[Tensor, "b d"]:
        """The teacher's vectors of sentences, as they are.

        Raises:
            ConfigError: there is neither a bank nor a single model of the student's width.
            DataError: a sentence is not in the bank.
        """
        if self.bank is not None:
            return self.bank.vectors(sentence_keys(batch))
        if self.teacher is None or self.teacher.dim != self._dim:
            raise ConfigError(
                f"teachers: {', '.join(self.teachers)} need a bank, which is made at the start of a training run; give"
                " run.max_steps or run.num_train_epochs in place of a budget of seconds"
            )
        sentences = torch.split(batch.input_ids.cpu(), batch.lengths.tolist())
        ids = self._reader(self.teacher, 0).in_own_tokens([ids.tolist() for ids in sentences], self.pivot)
        embeddings: Tensor = self.teacher(TokenBatch.from_lists(ids, batch.languages).to(batch.input_ids.device))
        return embeddings

    def interpolated(self, translations: TokenBatch, y: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """Targets of translations: the mean of both sides' vectors where the teacher knows the language, else y."""
        known = torch.tensor([code in self.known for code in translations.languages], device=y.device)
        if not known.any():
            return y
        rows = known.nonzero()[:, 0]
        x = self.vectors(take(translations, rows.tolist()))
        return y.index_copy(0, rows, (x + y[rows]) / 2)

    def negatives(
        self,
        translations: TokenBatch,
        originals: TokenBatch,
        y: Float[Tensor, "b d"],
        *,
        step: int,
        gather: Callable[[Tensor], Tensor],
    ) -> Negatives:
        """What the pairs of all processes are contrasted with: the bank's window of the step, or each other.

        Args:
            translations: of this process.
            originals: theirs in the pivot language.
            y: the teacher's vectors of these.
            step: of the run.
            gather: concatenates over the processes.
        """
        keys = gather(torch.stack([sentence_keys(originals), sentence_keys(translations)], dim=1))
        group, pivots = meaning_groups(keys), keys[:, 0]
        pairs = group[:, None] == group
        if self.bank is None:
            return Negatives(F.normalize(gather(y).float(), dim=1), pivots[:, None] == pivots, pairs, pairs)
        window = self.bank.window(step, y.device)
        same_sentence = pivots[:, None] == window.keys
        same_group = self.bank.groups(pivots)[:, None] == window.groups
        return Negatives(window.vectors, same_sentence, same_sentence | same_group, pairs)

    def is_known(self, keys: Int64[Tensor, " m"]) -> list[bool]:
        """Which sentences, by their keys, are in the bank."""
        return [False] * len(keys) if self.bank is None else (self.bank.rows(keys) >= 0).tolist()

    def _reader(self, teacher: Encoder, place: int, dtype: Dtype = "float32") -> ModelTeacher:
        name = self.teachers[place] if self.teachers else ""
        return ModelTeacher(
            teacher, self._vocabulary, pivot=self.pivot, prompt=self.prompts[place], name=name, dtype=dtype
        )

    @staticmethod
    def _is_matrix(*names: str) -> bool:
        return any(name.endswith(".npy") for name in names)
