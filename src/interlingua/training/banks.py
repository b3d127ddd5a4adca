"""The bank of a frozen teacher's vectors, filled once and part by part before the first step.

Each batch is a pure function of (seed, step), so the sentences that a run will read are known
before it starts. The bank holds only these sentences. If they are fewer than the negatives of a
step, it also holds sentences of the steps that would follow the last one. Parts of ``_PART``
sentences are distributed over the processes and written one by one; if the run is killed meanwhile,
the next one computes only the missing parts.
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy import ndarray
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.language_mixture import ParallelPlan
from interlingua.batches.sentences import by_pivot, meaning_groups, sentence_keys
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError
from interlingua.functional.anchoring import principal_components
from interlingua.methods.objective import Objective
from interlingua.methods.teachers.anchors import Anchors
from interlingua.methods.teachers.frozen_teachers import Teacher, VectorTeacher
from interlingua.methods.teachers.teacher_bank import (
    BankRecord,
    BankRequest,
    BankWindow,
    TeacherBank,
    read_bank_record,
    write_bank,
)
from interlingua.storage.arrays import normalize_rows
from interlingua.storage.files import atomic_write, remove_entries
from interlingua.training.build import MicroBatches
from interlingua.training.machine.engine import Engine, shared_out
from interlingua.training.optimization.dense_start import fit_dense

_PART = 4096
"""Sentences that are embedded and written at once."""
READ_AT_ONCE = 8192
"""Pairs read from the corpus at once."""


class Banks:
    """The banks of an objective: random vectors at first, the teachers' after ``fill``.

    Which sentences a bank holds depends on the length of the run. A run with a time budget knows
    its length only after it has timed some steps. These steps use random vectors, which take the
    same time as those of a teacher.

    Args:
        objective: before the first step, not sharded.
        batches: of the run.
        engine: the processes, which share the work.
        new_dense: the encoder's last layer is new, and is initialized as the map to the bank's
            vectors.
    """

    def __init__(
        self,
        objective: Objective,
        batches: MicroBatches,
        engine: Engine,
        *,
        new_dense: bool = False,
    ) -> None:
        self._objective = objective
        self._batches = batches
        self._engine = engine
        self._learners = _learners(objective)
        # Kept outside of the objective, so that it is neither sharded nor part of checkpoints.
        self._teachers = [anchors.teacher for anchors in self._learners]
        for anchors in self._learners:
            size = min(anchors.request.size, self._plan.epoch_size)
            anchors.use_bank(RandomBank(size=size, dim=objective.encoder.dim))
        self._new_dense = new_dense and bool(self._learners)
        self._encoder = objective.encoder
        if self._new_dense and engine.sharded:
            # The last layer is fitted to the encoder's vectors, which need the unsharded weights.
            self._encoder = copy.deepcopy(objective.encoder)

    @property
    def _plan(self) -> ParallelPlan:
        plan = self._batches.plans["parallel"]
        assert isinstance(plan, ParallelPlan)
        return plan

    def fill(
        self,
        validation: Sequence[Any],
        *,
        steps: int,
        folder: Path,
        unsharded: Objective | None = None,
    ) -> float:
        """Add a bank to each part of the objective that learns from a bank.

        A bank that does not exist yet is made now.

        Args:
            validation: batches that the objective is measured on.
            steps: of the whole run.
            folder: the run's.
            unsharded: the whole copy of the objective, which gets the same banks.

        Returns:
            processor seconds that the banks took, now or when they were made.

        Raises:
            ConfigError: a teacher's vectors are narrower than the student's.
            DataError: a sentence has no precomputed vector, or the disk is full.
        """
        seconds = 0.0
        copies = _learners(unsharded or self._objective)
        # A combination may have several terms that learn from a bank.
        for number, (anchors, of_copy) in enumerate(zip(self._learners, copies, strict=True)):
            sentences = RunSentences(anchors.request)
            sentences.read_run(self._plan, steps)
            for batch in parallel_batches(validation):
                sentences.add_measured(batch)
            builder = self._builder(number, sentences)
            request = anchors.request
            # A folder that several runs share holds a bank for each set of sentences.
            path = folder / f"bank{number or ''}"
            if request.folder:
                path = Path(request.folder).expanduser() / builder.digest[:16]
            seconds += builder.fill(path, self._engine).cpu_seconds
            bank = TeacherBank(path, size=request.size, every=request.every, seed=self._plan.seed)
            for one in {anchors, of_copy}:
                one.use_bank(bank)
                if one.alter is not None and one.alter.needs_names:
                    decode = self._encoder.vocabulary.decode
                    one.alter.learn_names([decode(ids) for ids in sentences.negatives()])
            if self._new_dense:
                began = time.process_time()
                fit_dense(self._encoder, sentences.negatives(), request.pivot, bank)
                seconds += time.process_time() - began
        if self._encoder is not self._objective.encoder:
            _copy_dense(self._encoder, self._objective.encoder)
            self._encoder = self._objective.encoder
        return seconds

    def _builder(self, number: int, sentences: RunSentences) -> BankBuilder:
        """Open the teachers of a learner, and return a builder that embeds sentences with them."""
        anchors = self._learners[number]
        anchors.teacher = self._teachers[number]
        # The teachers compute in the run's precision; vectors are stored in 16 bits in any case.
        dtype: Dtype = "bfloat16" if self._engine.precision == "bf16" else "float32"
        limit = min(self._batches.max_tokens, self._plan.max_tokens or self._batches.max_tokens)
        teachers = anchors.open_teachers(max_tokens=limit, dtype=dtype, device=self._engine.device)
        self._teachers[number] = None
        return BankBuilder(sentences, teachers, width=self._objective.encoder.dim)


def _learners(objective: Objective) -> list[Anchors]:
    """Return the parts of an objective that learn from a bank."""
    return [module for module in objective.modules() if isinstance(module, Anchors)]


@torch.no_grad()
def _copy_dense(fitted: Encoder, sharded: Encoder) -> None:
    """Give a sharded encoder the last linear layer of a whole one."""
    layers = [encoder.post_pooling.dense_layers[-1].linear for encoder in (fitted, sharded)]
    for whole, own in zip(*(layer.parameters() for layer in layers), strict=True):
        own.copy_(shared_out(whole, own))


class RandomBank(TeacherBank):
    """Random vectors in place of a bank. A step with them takes as long as with a bank.

    It holds no sentence: all keys are unknown, and each call returns the same vectors.

    Args:
        size: negatives of a step.
        dim: width of the vectors.
    """

    def __init__(self, *, size: int, dim: int) -> None:
        # There is no folder to open, so the base class is not called.
        self.size = size
        self._dim = dim
        self._window: tuple[int, torch.device, BankWindow] | None = None

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return self._dim

    def vectors(self, keys: Int64[Tensor, " b"]) -> Float32[Tensor, "b d"]:
        """Return random vectors."""
        return self._drawn(len(keys)).to(keys.device)

    def rows(self, keys: Int64[Tensor, " b"]) -> Int64[ndarray, " b"]:
        """Return -1 for each key."""
        return np.full(len(keys), -1, dtype=np.int64)

    def groups(self, keys: Int64[Tensor, " b"]) -> Int64[Tensor, " b"]:
        """Return -1 for each key."""
        return torch.full_like(keys, -1)

    def window(self, step: int, device: torch.device) -> BankWindow:
        """Return random negatives, the same ones in each step."""
        if self._window is None:
            rows = torch.arange(self.size, device=device)
            vectors = F.normalize(self._drawn(self.size).to(device), dim=1)
            self._window = (0, device, BankWindow(rows, rows, vectors))
        return self._window[2]

    def _drawn(self, count: int) -> Float32[Tensor, "n d"]:
        # A separate generator is used, because torch's global random numbers belong to the step.
        return torch.randn(count, self._dim, generator=torch.Generator().manual_seed(0))


def parallel_batches(batches: Iterable[Any]) -> Iterator[ParallelBatch]:
    """Yield only the batches of pairs from batches of one or several feeds."""
    for batch in batches:
        if isinstance(batch, ParallelBatch):
            yield batch
        elif isinstance(batch, Mapping):
            yield from parallel_batches(batch.values())


class RunSentences:
    """The distinct sentences of a run, by their keys.

    Negatives are the sentences of the pivot language. All other sentences are only looked up, as
    targets: sentences of the languages that the teacher knows, and validation sentences.

    Args:
        request: specifies these languages.
    """

    def __init__(self, request: BankRequest) -> None:
        self._request = request
        self._negatives: dict[int, ndarray] = {}
        self._others: dict[int, tuple[str, ndarray]] = {}
        self._pairs: list[Int64[ndarray, "n 2"]] = []

    def read_run(self, plan: ParallelPlan, steps: int) -> None:
        """Read the pairs of all steps, then further pairs until there are enough negatives."""
        size = plan.global_batch_size
        self._read(plan, np.arange(steps * size))
        # Read at most one more pass over the corpus: a second one would add no new sentence.
        first = steps * size
        last = first + plan.epoch_size
        while len(self._negatives) < self._request.size and first < last:
            more = min(self._request.size - len(self._negatives), last - first)
            self._read(plan, np.arange(first, first + more))
            first += more

    def add_measured(self, batch: ParallelBatch) -> None:
        """Add the sentences of a batch that is only used for evaluation."""
        translations, originals = by_pivot(batch, self._request.pivot)
        self._look_up(originals, {self._request.pivot})
        self._look_up(translations, self._request.known_languages)

    def negatives(self) -> list[list[int]]:
        """Return token ids of the negatives, in the order of their keys."""
        return [self._negatives[key].tolist() for key in sorted(self._negatives)]

    def arranged(
        self,
    ) -> tuple[Int64[ndarray, " n"], Int64[ndarray, " n"], int, list[tuple[str, list[int]]]]:
        """Return the contents of the bank, negatives first.

        Returns:
            keys, groups, the number of negatives, and language and token ids of all sentences.
        """
        pivot = self._request.pivot
        others = {key: value for key, value in self._others.items() if key not in self._negatives}
        # Sorted by key, so that the bank does not depend on the order in which they were read.
        first = sorted(self._negatives)
        second = sorted(others)
        ids = [(pivot, self._negatives[key].tolist()) for key in first]
        ids += [(others[key][0], others[key][1].tolist()) for key in second]
        keys = np.asarray([*first, *second], dtype=np.int64)
        # Sentences that share a translation are in one group and are not negatives of one another;
        # sentences that were only looked up are in no group.
        pairs = torch.from_numpy(np.concatenate(self._pairs))
        group = dict(zip(pairs[:, 0].tolist(), meaning_groups(pairs).tolist(), strict=True))
        groups = np.asarray([group.get(key, -1) for key in keys.tolist()], dtype=np.int64)
        return keys, groups, len(first), ids

    def _read(self, plan: ParallelPlan, places: Int64[ndarray, " n"]) -> None:
        indices, rows = plan.rows_at(places)
        # Read each row once, in the order of the file, no matter when and how often the run uses
        # it.
        distinct = np.unique(np.stack([indices, rows], axis=1), axis=0)
        languages = np.asarray(plan.store.language_pairs, dtype=object)
        for start in range(0, len(distinct), READ_AT_ONCE):
            part = distinct[start : start + READ_AT_ONCE]
            found = plan.store.read_packed(part[:, 0], part[:, 1], max_tokens=plan.max_tokens)
            codes = languages[part[:, 0]]
            a = TokenBatch.from_flat(found.source_ids, found.source_lengths, codes[:, 0].tolist())
            b = TokenBatch.from_flat(found.target_ids, found.target_lengths, codes[:, 1].tolist())
            translations, originals = by_pivot(ParallelBatch(a, b, step=0), self._request.pivot)
            keys = torch.stack([sentence_keys(originals), sentence_keys(translations)], dim=1)
            self._pairs.append(keys.numpy())
            for key, _, ids in _sentences(originals):
                self._negatives.setdefault(key, ids)
            self._look_up(translations, self._request.known_languages)

    def _look_up(self, batch: TokenBatch, languages: Iterable[str]) -> None:
        chosen = frozenset(languages)
        if not chosen:
            return
        for key, language, ids in _sentences(batch):
            if language in chosen:
                self._others.setdefault(key, (language, ids))


def _sentences(batch: TokenBatch) -> Iterator[tuple[int, str, ndarray]]:
    """Yield key, language and token ids of each sentence."""
    tokens = batch.input_ids.cpu().numpy().astype(np.int32)
    ids = np.split(tokens, batch.cu_seqlens.cpu().numpy()[1:-1])
    yield from zip(sentence_keys(batch).tolist(), batch.languages, ids, strict=True)


class BankBuilder:
    """Builder of a bank in parts, which reuses an existing one.

    Args:
        sentences: the required contents.
        teachers: the teachers that embed the sentences.
        width: of the student's vectors.

    Raises:
        ConfigError: the teachers' vectors together are narrower than the student's.
    """

    def __init__(self, sentences: RunSentences, teachers: Sequence[Teacher], *, width: int) -> None:
        self.teachers = teachers
        self.width = width
        self.keys, self.groups, self.negatives, self.sentences = sentences.arranged()
        self.widths = tuple(teacher.width for teacher in teachers)
        if sum(self.widths) < width:
            raise ConfigError(
                f"teachers: vectors of width {sum(self.widths)} cannot be reduced to the"
                f" encoder's width {width}; add a teacher, or use a smaller encoder"
            )
        # Everything that determines the vectors: a bank with this digest can be used as it is.
        identity = repr(([teacher.digest() for teacher in teachers], width, self.negatives))
        content = self.keys.tobytes() + self.groups.tobytes()
        self.digest = hashlib.sha256(identity.encode() + content).hexdigest()

    @property
    def joined(self) -> bool:
        """True if the teachers' vectors are projected to the student's width.

        This is the case with several teachers, or with one whose vectors are wider.
        """
        return self.widths != (self.width,)

    def fill(self, path: Path, engine: Engine) -> BankRecord:
        """Make the missing parts of the bank; all processes must call it.

        Args:
            path: folder of the bank; until the bank is complete, its parts are next to this folder.
            engine: the processes that share the work.

        Raises:
            DataError: some sentences have no precomputed vectors and are then written to a file, or
                the disk is full.
        """
        record = read_bank_record(path, verify=True)
        if record is not None and record.digest == self.digest:
            return record
        self._need_all_sentences(path)
        parts = path.with_name(f"{path.name}-parts-{self.digest[:12]}")
        files = [parts / f"{first:09d}.npz" for first in range(0, len(self.sentences), _PART)]
        # The parts are distributed over the processes in turn; an existing part was made by an
        # earlier run that was killed.
        for number, file in enumerate(files):
            if number % engine.world_size == engine.rank and not file.is_file():
                self._make_part(file, self.sentences[number * _PART : (number + 1) * _PART])
        engine.barrier()
        if engine.is_main:
            self._assemble(path, files)
            remove_entries(parts, r"\d{9}\.npz")
        engine.barrier()
        record = read_bank_record(path)
        assert record is not None
        return record

    def _make_part(self, file: Path, sentences: Sequence[tuple[str, list[int]]]) -> None:
        began = time.process_time()
        by_teacher = [self._embed(teacher, sentences) for teacher in self.teachers]
        vectors = np.concatenate(by_teacher, axis=1).astype(np.float16)
        with atomic_write(file, "wb") as opened:
            np.savez(opened, vectors=vectors, seconds=time.process_time() - began)

    def _embed(
        self, teacher: Teacher, sentences: Sequence[tuple[str, list[int]]]
    ) -> Float32[ndarray, "n d"]:
        found = np.empty((len(sentences), teacher.width), dtype=np.float32)
        # language by language, because some vocabularies first segment words by language
        for language in sorted({language for language, _ in sentences}):
            rows = [row for row, (code, _) in enumerate(sentences) if code == language]
            found[rows] = teacher.embed([sentences[row][1] for row in rows], language)
        if self.joined:
            # Each teacher then has the same influence, whatever the lengths of its vectors.
            return normalize_rows(found)
        return found

    def _assemble(self, path: Path, files: Sequence[Path]) -> None:
        began = time.process_time()
        projection: Projection | None = None
        explained: float | None = None
        if self.joined:
            projection = self._projection(files)
            explained = projection.explained
        seconds = 0.0
        parts = []
        for file in files:
            vectors, spent = _read_part(file)
            seconds += spent
            if projection is not None:
                vectors = (vectors - projection.mean) @ projection.basis
            parts.append(vectors)
        _, counts = np.unique(self.groups[: self.negatives], return_counts=True)
        record = BankRecord(
            digest=self.digest,
            negatives=self.negatives,
            sentences=len(self.sentences),
            largest_group=int(counts.max()),
            teachers=tuple(teacher.name for teacher in self.teachers),
            widths=self.widths,
            explained_variance=explained,
            cpu_seconds=seconds + time.process_time() - began,
        )
        write_bank(path, record, self.keys, self.groups, parts)

    def _projection(self, files: Sequence[Path]) -> Projection:
        """Compute the principal components of the negatives' joined vectors."""
        width = sum(self.widths)
        total = np.zeros(width)
        products = np.zeros((width, width))
        for number, file in enumerate(files):
            # Negatives come first, so later parts have none. The sums are in float64, because they
            # have many terms.
            negatives = max(0, self.negatives - number * _PART)
            vectors = _read_part(file)[0][:negatives].astype(np.float64)
            total += vectors.sum(axis=0)
            products += vectors.T @ vectors
        mean = total / self.negatives
        # E[v v'] - E[v] E[v]'
        covariance = torch.from_numpy(products / self.negatives - np.outer(mean, mean))
        basis, explained = principal_components(covariance, self.width)
        return Projection(basis.float().numpy(), mean.astype(np.float32), explained)

    def _need_all_sentences(self, path: Path) -> None:
        """Refuse precomputed vectors if some sentences have none.

        These sentences are written to a file, so that the teacher's model can embed them.
        """
        for teacher in self.teachers:
            if not isinstance(teacher, VectorTeacher):
                continue
            missing = teacher.missing([ids for _, ids in self.sentences])
            if missing:
                file = path.with_name(f"{path.name}-missing.txt")
                texts = [teacher.text(self.sentences[row][1]) for row in missing]
                with atomic_write(file) as opened:
                    opened.writelines(f"{text}\n" for text in texts)
                raise DataError(
                    f"{len(missing):,} of {len(self.sentences):,} sentences of this run have no"
                    f" vectors; add vectors and lines for the sentences listed in {file}",
                    path=teacher.name,
                )


class Projection(NamedTuple):
    """A map from the teachers' joined vectors to the student's width."""

    basis: Float32[ndarray, "w d"]
    mean: Float32[ndarray, " w"]
    explained: float
    """Share of the variance that is kept."""


def _read_part(file: Path) -> tuple[Float32[ndarray, "n w"], float]:
    """Read the vectors of a part, and the processor seconds that they took."""
    with np.load(file) as part:
        return part["vectors"].astype(np.float32), float(part["seconds"])
