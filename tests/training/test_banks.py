"""Banks of teacher vectors: their content, a single creation, and reuse of parts by a resumed
run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from interlingua.batches.sentences import by_pivot, sentence_keys
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError
from interlingua.methods.teachers import anchors as anchors_module
from interlingua.methods.teachers.frozen_teachers import ModelTeacher
from interlingua.methods.teachers.teacher_bank import read_bank_record
from interlingua.storage.files import sha256_file, sha256_tree
from interlingua.training import banks
from interlingua.training.banks import Banks
from interlingua.training.build import MicroBatches, build_objective
from interlingua.training.checkpoint import checkpoints_in
from interlingua.training.config import train_config_from
from interlingua.training.feeds.open_feeds import open_data
from interlingua.training.loop import run_training
from interlingua.training.machine.engine import Engine
from interlingua.training.validation import valid_batches
from tests.training.runs import digest, records

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


@pytest.fixture
def config(tiny_table):
    """A function from options of the method to the config of a tiny run."""

    def make(*, run=None, encoder=None, **method):
        options = {"name": "anchor", "bank_size": 64, "bank_steps": 2, **method}
        table = {
            **tiny_table,
            "method": options,
            "encoder": {"preset": "ems-tiny", **SMALL, **(encoder or {})},
        }
        table["run"] = {**tiny_table["run"], **(run or {})}
        return train_config_from(table)

    return make


@dataclasses.dataclass
class Parts:
    """Objects that the training loop makes before the first step."""

    objective: object
    batches: MicroBatches
    validation: list
    engine: Engine

    def fill(self, folder, *, steps=12, **options):
        filled = Banks(self.objective, self.batches, self.engine, **options)
        return filled.fill(self.validation, steps=steps, folder=folder)

    @property
    def anchors(self):
        return next(m for m in self.objective.modules() if isinstance(m, anchors_module.Anchors))


def parts(config):
    data = open_data(config, ("parallel",))
    objective = build_objective(config, data.vocabulary, data.languages)
    engine = Engine(config.run)
    batches = MicroBatches(config, data.train, objective.encoder.max_tokens, engine)
    return Parts(objective, batches, valid_batches(config, data, batches), engine)


def teacher(folder, vocabulary, *, seed, **sizes):
    from interlingua.encoder.modeling.backbone import BackboneConfig

    torch.manual_seed(seed)
    shape = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    Encoder.from_scratch(dataclasses.replace(shape, **{**SMALL, **sizes}), vocabulary).save(folder)
    return str(folder)


def test_the_bank_holds_what_the_run_reads_and_fills_up(config, tmp_path):
    made = parts(config(bank_size=200))
    encoder = made.objective.encoder
    expected = {}
    for step in range(12):
        _, originals = by_pivot(made.batches(step)[0], "eng_Latn")
        with torch.no_grad():
            expected |= dict(
                zip(
                    sentence_keys(originals).tolist(),
                    encoder.eval()(originals).numpy(),
                    strict=True,
                )
            )
    made.fill(tmp_path)
    bank = made.anchors.bank
    assert bank.record.negatives == 200 > len(expected)
    found = bank.vectors(torch.tensor(list(expected))).numpy()
    np.testing.assert_allclose(found, list(expected.values()), rtol=2e-3, atol=2e-3)
    for batch in made.validation:
        assert (bank.rows(sentence_keys(batch.b)) >= 0).all()
    assert bank.record.sentences > bank.record.negatives


def test_a_bank_is_made_once(config, tmp_path, monkeypatch):
    first = parts(config())
    seconds = first.fill(tmp_path)
    before = sha256_tree(tmp_path / "bank")
    monkeypatch.setattr(ModelTeacher, "embed", lambda *args: pytest.fail("embedded again"))
    assert (
        parts(config()).fill(tmp_path)
        == seconds
        == read_bank_record(tmp_path / "bank").cpu_seconds
        > 0
    )
    assert sha256_tree(tmp_path / "bank") == before


def test_other_sentences_or_another_teacher_make_another_bank(config, tmp_path, word_vocabulary):
    digests = set()
    name = teacher(tmp_path / "teacher", word_vocabulary, seed=7)
    for options in ({}, {"bank_size": 300}, {"teachers": [name]}, {"known_languages": ["de"]}):
        parts(config(**options)).fill(tmp_path)
        digests.add(read_bank_record(tmp_path / "bank").digest)
    assert len(digests) == 4


def test_runs_that_name_a_folder_share_what_is_in_it(config, tmp_path):
    shared = tmp_path / "banks"
    for size in (64, 300, 64):
        made = parts(config(bank=str(shared), bank_size=size))
        made.fill(tmp_path / "run")
        assert made.anchors.bank.record.negatives >= size
    assert len(list(shared.iterdir())) == 2


def test_a_killed_run_goes_on_behind_its_parts(config, tmp_path, monkeypatch):
    monkeypatch.setattr(banks, "_PART", 40)
    whole = parts(config())
    whole.fill(tmp_path / "whole")
    embed, calls = ModelTeacher.embed, []

    def killed(self, sentences, language):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(len(sentences))
        return embed(self, sentences, language)

    monkeypatch.setattr(ModelTeacher, "embed", killed)
    with pytest.raises(KeyboardInterrupt):
        parts(config()).fill(tmp_path)
    assert read_bank_record(tmp_path / "bank") is None
    left = list(tmp_path.glob("bank-parts-*"))
    assert [len(list(folder.iterdir())) for folder in left] == [2]
    again = []
    monkeypatch.setattr(
        ModelTeacher,
        "embed",
        lambda self, ids, language: again.append(len(ids)) or embed(self, ids, language),
    )
    made = parts(config())
    made.fill(tmp_path)
    assert sum(again) == made.anchors.bank.record.sentences - sum(calls)
    for name in ("keys", "groups", "vectors"):
        assert sha256_file(tmp_path / "bank" / f"{name}.npy") == sha256_file(
            tmp_path / "whole" / "bank" / f"{name}.npy"
        )
    assert list(tmp_path.glob("bank-parts-*")) == []


def test_processes_share_the_parts(config, tmp_path, monkeypatch):
    monkeypatch.setattr(banks, "_PART", 40)
    made = parts(config())

    class Other:
        """The second of two processes, which does not write the bank.

        The first has done its parts before.
        """

        world_size, rank, is_main = 2, 1, False

        def barrier(self):
            files = sorted(
                int(file.stem) // 40
                for folder in tmp_path.glob("bank-parts-*")
                for file in folder.iterdir()
            )
            assert files == [number for number in range(len(files) * 2) if number % 2]
            raise StopIteration

    limit = made.batches.max_tokens
    builder = banks.BankBuilder(
        sentences_of(made),
        made.anchors.open_teachers(max_tokens=limit),
        width=made.objective.encoder.dim,
    )
    with pytest.raises(StopIteration):
        builder.fill(tmp_path / "bank", Other())


def sentences_of(made):
    found = banks.RunSentences(made.anchors.request)
    found.read_run(made.batches.plans["parallel"], 12)
    return found


def test_pairs_that_share_a_translation_are_one_group(config, tmp_path):
    made = parts(config())
    found = sentences_of(made)
    keys, groups, negatives, _ = found.arranged()
    edges = np.concatenate([pairs.numpy() for pairs in map(torch.from_numpy, found._pairs)])
    group = dict(zip(keys[:negatives].tolist(), groups[:negatives].tolist(), strict=True))
    for translation in set(edges[:, 1].tolist()):
        assert len({group[key] for key in edges[edges[:, 1] == translation, 0].tolist()}) == 1
    assert list(keys[:negatives]) == sorted(keys[:negatives])


def test_several_teachers_are_joined_and_say_what_is_kept(config, tmp_path, word_vocabulary):
    names = [
        teacher(tmp_path / "first", word_vocabulary, seed=1),
        teacher(tmp_path / "second", word_vocabulary, seed=2, hidden_size=24),
    ]
    made = parts(config(teachers=names))
    made.fill(tmp_path)
    record = made.anchors.bank.record
    assert (record.widths, made.anchors.bank.dim) == ((16, 24), 16)
    assert 0.5 < record.explained_variance < 1
    assert "40 dimensions of 2 teachers reduced to 16" in " ".join(made.objective.notes())
    # cosines are those of the joined unit vectors less their mean, as far as 16 dimensions hold
    # them
    ids = sentences_of(made).negatives()
    keys = torch.from_numpy(np.asarray(sorted(sentences_of(made)._negatives)))
    readers = [
        ModelTeacher(Encoder.load(name), word_vocabulary, pivot="eng_Latn") for name in names
    ]
    halves = [reader.embed(ids, "eng_Latn") for reader in readers]
    joined = np.concatenate(
        [half / np.linalg.norm(half, axis=1, keepdims=True) for half in halves], axis=1
    )
    centered = joined - joined.mean(axis=0)
    values, basis = np.linalg.eigh(centered.T @ centered)
    assert record.explained_variance == pytest.approx(values[-16:].sum() / values.sum(), abs=1e-3)
    projected = centered @ basis[:, -16:]
    found = made.anchors.bank.vectors(keys).numpy()
    np.testing.assert_allclose(found @ found.T, projected @ projected.T, atol=5e-3)


def test_narrow_teachers_are_an_error(config, tmp_path, word_vocabulary):
    name = teacher(tmp_path / "narrow", word_vocabulary, seed=1, hidden_size=8)
    with pytest.raises(ConfigError, match=r"width 8 .*width 16"):
        parts(config(teachers=[name])).fill(tmp_path)


def test_ready_vectors_that_lack_sentences_are_told_which(config, tmp_path, word_vocabulary):
    matrix = tmp_path / "muse.npy"
    np.save(matrix, np.zeros((1, 16), dtype=np.float32))
    matrix.with_suffix(".txt").write_text("en1 en2\n")
    with pytest.raises(DataError, match=r"\d+ of .*no vectors"):
        parts(config(teachers=[str(matrix)])).fill(tmp_path)
    lines = (tmp_path / "bank-missing.txt").read_text().splitlines()
    vectors = np.random.default_rng(0).normal(size=(len(lines) + 1, 16)).astype(np.float32)
    np.save(matrix, vectors)
    matrix.with_suffix(".txt").write_text("".join(f"{line}\n" for line in ["en1 en2", *lines]))
    made = parts(config(teachers=[str(matrix)]))
    made.fill(tmp_path)
    keys = sentence_keys_of(word_vocabulary, lines)
    np.testing.assert_allclose(
        made.anchors.bank.vectors(keys).numpy(), vectors[1:], rtol=1e-3, atol=1e-3
    )


def sentence_keys_of(vocabulary, lines):
    from interlingua.batches.tokens import TokenBatch

    return sentence_keys(TokenBatch.from_lists(vocabulary.encode(lines), ["eng_Latn"] * len(lines)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hard_weight": 1.0, "student_reads": "both", "known_languages": ["de"]},
        {"encoder": {"dense": True}},
    ],
)
def test_a_resumed_run_with_a_bank_ends_with_the_same_bytes(config, tmp_path, options, monkeypatch):
    whole = config(run={"output": str(tmp_path / "whole")}, **options)
    run_training(whole, progress=False)
    stopped = config(run={"output": str(tmp_path / "stopped")}, **options)

    def evaluate(encoder, step):
        if step == 6:
            raise RuntimeError
        return {}

    with pytest.raises(RuntimeError):
        run_training(stopped, evaluate=evaluate, progress=False)
    assert [path.name for path in checkpoints_in(stopped.run.output / "checkpoints")] == [
        "step-00000004"
    ]
    monkeypatch.setattr(ModelTeacher, "embed", lambda *args: pytest.fail("embedded again"))
    run_training(stopped, progress=False)
    assert digest(stopped.run.output) == digest(whole.run.output)
    (final,) = records(whole.run.output, "final")
    assert final["cpu_seconds"] > read_bank_record(whole.run.output / "bank").cpu_seconds


def test_a_term_of_a_combination_has_a_bank_too(config, tmp_path, tiny_table):
    terms = {"anchor": {"method": "anchor", "bank_size": 32}, "match": {"method": "infonce"}}
    made = parts(
        train_config_from(
            {
                **tiny_table,
                "encoder": {"preset": "ems-tiny", **SMALL},
                "method": {"name": "combination", "terms": terms},
            }
        )
    )
    made.fill(tmp_path)
    assert made.anchors.bank is not None
    assert "bank" in " ".join(made.objective.notes())
    assert torch.isfinite(made.objective.train()(made.batches(0)[0]).loss)
