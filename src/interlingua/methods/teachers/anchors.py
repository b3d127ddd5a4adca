"""Sources of a student's targets: a bank of stored teacher vectors, or a teacher.

A bank is filled once, before training, with the vectors of all sentences of the pivot language (and
of the languages that the teacher knows). Each step then looks its sentences up by their keys, and
takes a window of the bank's negatives. Without a bank a single teacher of the student's width
embeds each batch, and the pairs of the batch are each other's negatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.batches.altered_sentences import AlteredBatch, AlteredSentences, HardRequest
from interlingua.batches.sentences import (
    Meanings,
    by_pivot,
    join,
    language_codes,
    sentence_keys,
    take,
)
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config.languages import resolve_language
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.methods.teachers.frozen_teachers import ModelTeacher, Teacher, VectorTeacher
from interlingua.methods.teachers.teacher_bank import BankRequest, TeacherBank
from interlingua.runtime.devices import on_device

Rows = Float[Tensor, "_ d"]
"""Vectors, one below another."""


class Negatives(NamedTuple):
    """The vectors with which the student's vectors of a batch of pairs are contrasted.

    If the student reads both sides, B counts each pair twice.
    """

    vectors: Float[Tensor, "n d"]
    """Vectors of the teacher, of length 1."""
    same_sentence: Bool[Tensor, "b n"]
    """True where the negative is the vector of the pair's own sentence in the pivot language."""
    same_meaning: Bool[Tensor, "b n"]
    """True for negatives with the pair's meaning, including those of the same sentence."""
    pairs: Bool[Tensor, "b b"]
    """True for pairs of the batch with the same meaning."""
    languages: Int64[Tensor, " b"]
    """A number for the language in which the student reads each pair."""

    def take(self, rows: slice) -> Negatives:
        """Return the negatives of some students."""
        return Negatives(
            self.vectors,
            same_sentence=self.same_sentence[rows],
            same_meaning=self.same_meaning[rows],
            pairs=self.pairs[rows],
            languages=self.languages[rows],
        )


VectorSource = TokenBatch | Float[Tensor, "b d"]
"""Source of the teacher's vectors: the sentences in its tokens, or the bank's vectors."""


class AnchoredPairs(NamedTuple):
    """A batch of pairs with everything that can be computed before it is read."""

    translations: TokenBatch
    originals: TokenBatch
    """Sentences in the pivot language, followed by their altered forms, if any."""
    both: TokenBatch | None
    """Translations and originals, if both are read."""
    owners: Int64[Tensor, " m"] | None
    """Row of the original of each altered form."""
    meanings: Meanings
    """Meanings of the pairs, by their originals and translations."""
    languages: tuple[Int64[Tensor, " b"], Int64[Tensor, " b"]]
    """Numbers for the languages of the translations and of the originals."""
    anchors: VectorSource
    """Anchors of the originals."""
    known: tuple[Int64[Tensor, " k"], VectorSource] | None
    """Rows of translations in languages that the teacher knows, and their vectors' source."""
    in_bank: Int64[Tensor, " b"] | None
    """Groups of the originals in the bank, if there is one."""


class Reading(NamedTuple):
    """The sentences of a batch of pairs that a student reads, and the target of each."""

    sentences: TokenBatch
    """The translations, the originals with their altered forms, or all in this order."""
    targets: list[Float[Tensor, "b d"]]
    """Targets of each side that is read."""
    languages: list[Int64[Tensor, " b"]]
    """Language number of each sentence, for each side."""
    anchors: Float[Tensor, "b d"]
    """The teacher's vectors of the originals."""
    owners: Int64[Tensor, " m"] | None
    """Row of the original of each altered form, if there are some."""


class Anchors(nn.Module):
    """The teacher's vectors for the student's tokens, and hard negatives of the sentences.

    Args:
        student: the encoder that learns; a copy of it is the teacher if none is named.
        teachers: folders, hub ids, or ``.npy`` files of ready vectors.
        prompts: text in front of the sentences of each teacher; empty = none.
        bank: the required contents of the bank.
        hard: which altered sentences to make, if any.

    Raises:
        ConfigError: a single teacher can't read the text of the student's tokens.
        CheckpointError: there is no such teacher.
    """

    _place: Tensor

    def __init__(
        self,
        student: Encoder,
        *,
        teachers: Sequence[str],
        prompts: Sequence[str],
        bank: BankRequest,
        hard: HardRequest | None = None,
    ) -> None:
        super().__init__()
        self.pivot = resolve_language(bank.pivot).code
        self.known = tuple(resolve_language(name).code for name in bank.known_languages)
        self.request = bank._replace(pivot=self.pivot, known_languages=self.known)
        self.teachers = tuple(teachers)
        # The copy of the student, if no teacher is named, has a prompt too.
        self.prompts = tuple(prompts) or ("",) * max(len(teachers), 1)
        self.bank: TeacherBank | None = None
        self.alter: AlteredSentences | None = None
        if hard is not None:
            self.alter = AlteredSentences(
                student.vocabulary, self.pivot, hard, max_tokens=student.max_tokens
            )
        # An empty buffer moves with the module, so its device is the student's device.
        self.register_buffer("_place", torch.empty(0), persistent=False)
        self._vocabulary = student.vocabulary
        self._dim = student.dim
        self.teacher: Encoder | None = None
        # Several teachers, and ready vectors, are only used to fill a bank: see `open_teachers`.
        if len(self.teachers) < 2 and not any(map(is_vector_file, self.teachers)):
            teacher = Encoder.load(self.teachers[0]) if self.teachers else student.clone()
            self.teacher = teacher.float()
            self.teacher.requires_grad_(False)
            # Make a reader only because its constructor refuses text that the teacher can't read.
            self._reader(self.teacher, 0)

    def train(self, mode: bool = True) -> Anchors:
        """Set the student's mode; the teacher stays in evaluation, without dropout."""
        super().train(mode)
        if self.teacher is not None:
            self.teacher.eval()
        return self

    def open_teachers(
        self, *, max_tokens: int, dtype: Dtype = "float32", device: torch.device | str = "cpu"
    ) -> list[Teacher]:
        """Open the teachers, to fill a bank.

        Args:
            max_tokens: length that the student's sentences are cut to.
            dtype: the dtype in which models compute.
            device: the device on which models compute.
        """
        if self.teacher is not None:
            return [self._reader(self.teacher, 0, dtype)]
        opened: list[Teacher] = []
        for number, name in enumerate(self.teachers):
            if is_vector_file(name):
                teacher = VectorTeacher(
                    name, self._vocabulary, pivot=self.pivot, max_tokens=max_tokens
                )
                opened.append(teacher)
            else:
                opened.append(self._reader(Encoder.load(name).to(device), number, dtype))
        return opened

    def use_bank(self, bank: TeacherBank) -> None:
        """Use the vectors of a bank in later calls, and release the teacher."""
        self.bank = bank
        self.teacher = None

    def source(self, batch: TokenBatch) -> VectorSource:
        """Return the source of the teacher's vectors of sentences, for ``vectors``.

        Raises:
            ConfigError: there is neither a bank nor a single model of the student's width.
            DataError: a sentence is not in the bank.
        """
        if self.bank is not None:
            return self.bank.vectors(sentence_keys(batch))
        if self.teacher is None or self.teacher.dim != self._dim:
            raise ConfigError(
                f"teachers: {', '.join(self.teachers)} require a bank, which is built at the"
                " start of a training run; set run.max_steps or run.num_train_epochs instead of"
                " run.budget_seconds"
            )
        sentences = torch.split(batch.input_ids, batch.lengths.tolist())
        student_ids = [ids.tolist() for ids in sentences]
        # A teacher with another vocabulary reads the texts that the student's ids encode.
        ids = self._reader(self.teacher, 0).in_own_tokens(student_ids, self.pivot)
        return TokenBatch.from_lists(ids, batch.languages)

    @torch.no_grad()
    def vectors(self, source: VectorSource) -> Float[Tensor, "b d"]:
        """Return the teacher's vectors of sentences, not normalized."""
        if isinstance(source, Tensor):
            return on_device(source, self._place.device)
        assert self.teacher is not None
        embeddings: Tensor = self.teacher(source)
        return embeddings

    def prepare(
        self,
        batch: ParallelBatch,
        translations: bool,
        originals: bool,
        *,
        as_written: Callable[[TokenBatch], TokenBatch] = lambda sentences: sentences,
    ) -> AnchoredPairs:
        """Prepare a batch before it is read: everything except a teacher's computation.

        Args:
            batch: the pairs.
            translations: whether the student reads the translations.
            originals: whether the student reads the originals, with their altered forms.
            as_written: function that returns sentences in the form that the student reads; their
                anchors are those of the unchanged sentences.
        """
        foreign, own = by_pivot(batch, self.pivot)
        known_rows = [row for row, code in enumerate(foreign.languages) if code in self.known]
        known = None
        if known_rows:
            known = torch.tensor(known_rows), self.source(take(foreign, known_rows))
        meanings = Meanings.of(own, foreign)
        in_bank = None
        if self.bank is not None:
            in_bank = self.bank.groups(meanings.keys[:, 0])
        altered: AlteredBatch | None = None
        if originals and self.alter is not None:
            altered = self.alter(own, seed=batch.seed, step=batch.step, is_known=self.is_known)
        translated = as_written(foreign)
        read = as_written(own)
        owners = None
        if altered is not None:
            read = join(read, altered.sentences)
            owners = altered.owners
        both = None
        if translations and originals:
            both = join(translated, read)
        return AnchoredPairs(
            translations=translated,
            originals=read,
            both=both,
            owners=owners,
            meanings=meanings,
            languages=(language_codes(foreign), language_codes(own)),
            anchors=self.source(own),
            known=known,
            in_bank=in_bank,
        )

    def interpolated(self, pairs: AnchoredPairs, y: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """Compute the targets of translations, OmniSONAR.

        A target is (x + y) / 2 if the teacher knows the language of the translation, otherwise y.
        Here x and y are the teacher's vectors of the translation and of the original.
        """
        if pairs.known is None:
            return y
        x = self.vectors(pairs.known[1])
        rows = on_device(pairs.known[0], y.device)
        return y.index_copy(0, rows, (x + y[rows]) / 2)

    def reading(self, pairs: AnchoredPairs, translations: bool, originals: bool) -> Reading:
        """Return the sentences of a batch to read: one side, or both if ``prepare`` joined them."""
        y = self.vectors(pairs.anchors)
        if not originals:
            targets = [self.interpolated(pairs, y)]
            return Reading(pairs.translations, targets, [pairs.languages[0]], y, None)
        if not translations:
            return Reading(pairs.originals, [y], [pairs.languages[1]], y, pairs.owners)
        assert pairs.both is not None
        targets = [self.interpolated(pairs, y), y]
        return Reading(pairs.both, targets, [*pairs.languages], y, pairs.owners)

    def negatives(
        self, pairs: AnchoredPairs, read: Reading, step: int, gather: Callable[[Tensor], Tensor]
    ) -> Negatives:
        """Return the negatives of the pairs of all processes.

        They are the bank's window of the step, or, without a bank, the anchors of all pairs.

        Args:
            pairs: the pairs of this process.
            read: the sentences of these pairs that the student reads.
            step: the step of the run.
            gather: function that concatenates tensors over the processes.
        """
        device = read.anchors.device
        # A pair is identified by the keys of its two sentences. Pairs that share a sentence,
        # directly or through other pairs, have the same meaning and must not be each other's
        # negatives.
        meanings = pairs.meanings.gathered(gather)
        same_pairs = meanings.are_same(device)
        pivots = on_device(meanings.keys, device)[:, 0]
        if self.bank is None:
            vectors = F.normalize(gather(read.anchors).float(), dim=1)
            same_sentence = pivots[:, None] == pivots
            same_meaning = same_pairs
        else:
            assert pairs.in_bank is not None
            # In the bank the groups are those of the whole corpus, not only of this batch.
            in_bank = gather(on_device(pairs.in_bank, device))
            window = self.bank.window(step, device)
            vectors = window.vectors
            same_sentence = pivots[:, None] == window.keys
            same_meaning = same_sentence | (in_bank[:, None] == window.groups)
        # The rows are repeated for a second side: the masks do not depend on which side is read.
        count = len(read.targets)
        return Negatives(
            vectors,
            same_sentence.repeat(count, 1),
            same_meaning.repeat(count, 1),
            same_pairs.repeat(count, count),
            torch.cat([gather(on_device(codes, device)) for codes in read.languages]),
        )

    def notes(self) -> list[str]:
        """Return lines for the user that describe the bank."""
        if self.bank is None:
            return []
        record = self.bank.record
        others = record.sentences - record.negatives
        lines = [
            f"bank: {record.negatives:,} negatives and {others:,} other sentences, embedded by"
            f" {', '.join(record.teachers)} in {record.cpu_seconds:.0f} CPU seconds",
            "bank: the largest group of sentences with a common translation has"
            f" {record.largest_group:,} sentences",
        ]
        if record.explained_variance is not None:
            lines.append(
                f"bank: {sum(record.widths)} dimensions of {len(record.widths)} teachers reduced"
                f" to {self.bank.dim}, which explain {100 * record.explained_variance:.1f} % of"
                " the variance"
            )
        return lines

    def is_known(self, keys: Int64[Tensor, " m"]) -> list[bool]:
        """Return whether each sentence is in the bank, by its key."""
        if self.bank is None:
            return [False] * len(keys)
        is_in_bank: list[bool] = (self.bank.rows(keys) >= 0).tolist()
        return is_in_bank

    def _reader(self, teacher: Encoder, number: int, dtype: Dtype = "float32") -> ModelTeacher:
        # The copy of the student has no name.
        names = self.teachers or ("",)
        return ModelTeacher(
            teacher,
            self._vocabulary,
            pivot=self.pivot,
            prompt=self.prompts[number],
            name=names[number],
            dtype=dtype,
        )


def is_vector_file(name: str) -> bool:
    """Return whether a teacher is a file of ready vectors."""
    return name.endswith(".npy")
