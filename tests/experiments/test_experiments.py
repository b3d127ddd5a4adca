"""Every experiment file, and every arm of a file of arms, loads and builds its objective.

Runs of which only numbers and names differ are of one kind: the first run of each kind
takes two steps, and each of its weights is read. No two files are the same. Backbone, vocabulary
and data are tiny ones; method, batches and schedule are the file's.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from interlingua.batches.feeds import token_batches
from interlingua.config import load_toml
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError
from interlingua.training.build import MicroBatches, build_objective, feeds_of
from interlingua.training.config import EncoderConfig, load_train_config
from interlingua.training.feeds.open_feeds import open_data
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.optim import build_optimizer, set_learning_rate
from interlingua.training.optimization.schedules import learning_rate_factor, peak_learning_rate
from interlingua.training.stages import is_staged, load_stages
from tests.conftest import pairs
from tests.experiments.test_arms import FILES as ARMS
from tests.experiments.test_arms import arms_script, read

ROOT = Path(__file__).parents[2] / "experiments"
NO_RUNS = ("arm", "sources", "table")
"""Keys of files of arms (test_arms.py), of corpora, and of printed tables
(test_printed_tables.py)."""
ALL_FILES = sorted(path for path in ROOT.rglob("*.toml") if not set(NO_RUNS) & set(load_toml(path)))
STAGED = [path for path in ALL_FILES if is_staged(path)]
FILES = [path for path in ALL_FILES if path not in STAGED]
WITHOUT_ARMS = [pytest.param(path, (), id=path.relative_to(ROOT).as_posix()) for path in FILES]
RUNS = [*WITHOUT_ARMS]
for path in ARMS:
    for arm in [arm for arm in read(path).arm if arm.config]:
        asked = arms_script.settings(read(path).set, arm.set)[1::2]
        RUNS.append(
            pytest.param(
                path.parent / arm.config,
                asked,
                id=f"{path.relative_to(ROOT).as_posix()}-{arm.name}",
            )
        )
STEPS = 100
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
MODELS = {
    "distill": ("teacher",),
    "anchor": ("teachers",),
    "teacher_similarity": ("teacher",),
}
"""Options that name a pretrained model, by method."""
PROMPTS = ("question_prompt", "passage_prompt")
OFF = {"xtr": {"generative": "none"}, "contrastive": {"contrastive": "none"}}
"""Settings that switch off a term without setting its weight to 0."""
ALWAYS = {"decoder", "retrieval", "xlco"}
"""Terms that are their method: without them it is another one."""


@pytest.fixture(autouse=True)
def data_folder(monkeypatch):
    """Give the experiments the folder that they name."""
    monkeypatch.setenv("INTERLINGUA_DATA", "/data")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A file of each kind that runs read besides the corpus."""
    folder = tmp_path_factory.mktemp("texts")
    rows = [english for _, english in pairs("deu_Latn", 60, seed=3)]
    ranks = [
        f"{a}\t{b}\t{label}" for a, b, label in zip(rows, rows[1:], [0, 2.5, 5] * 20, strict=False)
    ]
    classes = [f"{a}\t{b}\tneutral" for a, b in pairwise(rows)]
    asked = [
        {"question": a, "positive_ctxs": [{"text": b}], "hard_negative_ctxs": [{"text": c}]}
        for a, b, c in zip(rows, rows[1:], rows[2:], strict=False)
    ]
    files = {
        "sts": "en.sts.tsv",
        "nli": "en.nli.tsv",
        "questions": "questions.json",
        "monolingual": "en.txt",
    }
    found = {kind: folder / name for kind, name in files.items()}
    found["sts"].write_text("\n".join(ranks), encoding="utf-8")
    found["nli"].write_text("\n".join(classes), encoding="utf-8")
    found["questions"].write_text(json.dumps(asked), encoding="utf-8")
    found["monolingual"].write_text("\n".join(rows), encoding="utf-8")
    return found


@pytest.fixture
def at_tiny_size(prepared, texts, word_vocabulary, tmp_path):
    """Return a function that gives a run tiny data, a tiny encoder and tiny models."""

    def read_from(section, **paths):
        return section and dataclasses.replace(section, valid=(), **paths)

    def make(config):
        given, options = config.data, config.method.options
        labeled = (
            read_from(given.labeled, paths=(texts[given.labeled.kind],)) if given.labeled else None
        )
        monolingual = given.monolingual and dataclasses.replace(
            given.monolingual, paths=(texts["monolingual"],)
        )
        questions = read_from(
            given.questions, paths=(texts["questions"],), held_out=0, languages=()
        )
        if questions and questions.batch_size:
            questions = dataclasses.replace(questions, batch_size=min(questions.batch_size, 32))
        data = dataclasses.replace(
            given,
            corpus=prepared,
            language_pairs=(),
            similarity=(),
            labeled=labeled,
            questions=questions,
            monolingual=monolingual,
        )
        kept = {"initialization": config.encoder.initialization, "pooling": config.encoder.pooling}
        if any(name in MODELS for name in methods_of(config.method)):
            shape = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
            model = Encoder.from_scratch(dataclasses.replace(shape, **SMALL), word_vocabulary)
            model.save(tmp_path / "model")
            options = with_models(config.method.name, options, str(tmp_path / "model"))
        return dataclasses.replace(
            config.replace_run(device="cpu", devices=1, precision="fp32", threads=1),
            data=data,
            encoder=EncoderConfig(preset="ems-tiny", **kept, **SMALL),
            method=at_width(
                dataclasses.replace(config.method, options=options), SMALL["hidden_size"]
            ),
        )

    return make


def methods_of(method):
    """Return the names of the method and of a combination's terms."""
    terms = getattr(method.options, "terms", {})
    return [method.name, *(table["method"] for table in terms.values())]


def with_models(name, options, model):
    """Return the options, a combination's too, with ``model`` for each pretrained model."""
    if name == "combination":
        terms = {
            label: table | replaced_models(table["method"], table, model)
            for label, table in options.terms.items()
        }
        return dataclasses.replace(options, terms=terms)
    named = {key: getattr(options, key) for key in MODELS.get(name, ())}
    return dataclasses.replace(options, **replaced_models(name, named, model))


def replaced_models(name, given, model):
    """Return the entries of ``given`` that name models, with ``model`` in their place.

    It replaces all of several teachers; their prompts are removed.
    """
    changes = {}
    for key in MODELS.get(name, ()):
        if given.get(key):
            several = not isinstance(given[key], str)
            changes |= {key: (model,), "teacher_prompts": ()} if several else {key: model}
            # The tiny vocabulary has no words for prompts.
            changes |= {prompt: "" for prompt in PROMPTS if given.get(prompt)}
    return changes


def at_width(method, width):
    """Return the method with as many widths as before: ``width`` and the next smaller numbers."""
    return dataclasses.replace(
        method, matryoshka=tuple(range(width, width - len(method.matryoshka), -1))
    )


def without_width(term):
    """Remove the width: ``ranking_128`` -> ``ranking``."""
    return re.sub(r"_\d+$", "", term)


def micro_batches(config):
    """Return the function that gives the micro-batches of a step, in the sizes of the file."""
    data = open_data(config, feeds_of(config.method))
    return MicroBatches(
        config,
        data.train,
        BackboneConfig.preset("ems-tiny", vocab_size=1).max_tokens,
        Engine(config.run),
    )


def kind_of(config):
    """Return what two runs share if they take the same way through the code: all options but
    their numbers, their lengths, and names of models."""
    method = config.method
    return (
        *(method.name, shape_of(method.options), len(method.matryoshka)),
        *(config.encoder.initialization, config.encoder.pooling),
        config.run.micro_batch_size is None,
        *(shape_of(config.optimizer), shape_of(config.schedule)),
    )


def shape_of(value):
    """Return an option with a placeholder for a number above zero, and for a path or model."""
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return tuple((name, shape_of(entry)) for name, entry in sorted(value.items()))
    if isinstance(value, tuple | list):
        return min(len(value), 2)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number" if value else 0
    return "path" if isinstance(value, Path) or "/" in str(value) else value


def first_of_each_kind(runs):
    """Return the runs that represent all others of their kind."""
    first = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLINGUA_DATA", "/data")
        for run in runs:
            path, overrides = run.values
            first.setdefault(kind_of(load_train_config(path, overrides=overrides)), run)
    return list(first.values())


KINDS = first_of_each_kind(RUNS)
of_each_kind = pytest.mark.parametrize(("path", "overrides"), KINDS)
of_each_kind_of_file = pytest.mark.parametrize(
    ("path", "overrides"), first_of_each_kind(WITHOUT_ARMS)
)


def test_each_method_has_a_run_that_takes_two_steps():
    methods = [
        {load_train_config(path, overrides=overrides).method.name for path, overrides in values}
        for values in ([run.values for run in runs] for runs in (KINDS, RUNS))
    ]
    assert methods[0] == methods[1]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({"a": 0.5, "b": "mean"}, {"b": "mean", "a": 2}, True),
        ({"a": 0.5}, {"a": 0.0}, False),
        ({"a": True}, {"a": False}, False),
        ({"a": "mean"}, {"a": "cls"}, False),
        ({"a": "models/x"}, {"a": "models/y"}, True),
        ({"a": (1, 2)}, {"a": (3, 4, 5)}, True),
        ({"a": (1, 2)}, {"a": (3,)}, False),
    ],
)
def test_numbers_lengths_and_models_make_no_kind(one, other, is_same):
    assert (shape_of(one) == shape_of(other)) == is_same


@pytest.mark.parametrize(("path", "overrides"), RUNS)
def test_it_loads_and_builds(path, overrides, at_tiny_size, word_vocabulary):
    config = at_tiny_size(load_train_config(path, overrides=overrides))
    objective = build_objective(config, word_vocabulary).train()
    assert build_optimizer(objective, config.optimizer).param_groups
    found = micro_batches(config)(0)
    size = config.run.micro_batch_size or config.run.global_batch_size
    assert len(found) * size == config.run.global_batch_size
    assert next(token_batches(found[0])).batch_size == size


@of_each_kind
def test_it_takes_two_steps(path, overrides, at_tiny_size, word_vocabulary):
    config = at_tiny_size(load_train_config(path, overrides=overrides))
    objective = build_objective(config, word_vocabulary).train()
    objective.total_steps = STEPS
    batches, optimizer = micro_batches(config), build_optimizer(objective, config.optimizer)
    before = {name: weight.detach().clone() for name, weight in objective.named_parameters()}
    for step in range(2):
        factor = learning_rate_factor(step, config=config.schedule, max_steps=STEPS)
        set_learning_rate(optimizer, peak_learning_rate(config.optimizer, STEPS) * factor)
        optimizer.zero_grad()
        output = objective(batches(step)[0])
        output.loss.backward()
        optimizer.step()
        objective.after_step(step)
        assert torch.isfinite(output.loss)
    trained = {
        name: weight for name, weight in objective.named_parameters() if weight.requires_grad
    }
    still = [name for name, weight in trained.items() if torch.equal(weight, before[name])]
    assert [
        name for name in still if not trained[name].grad.abs().sum() > 0
    ] == []  # a warm-up may round to nothing


def after_a_step(config, vocabulary, batch):
    """Return the objective with something in its queue, where it has one."""
    objective = build_objective(config, vocabulary).train()
    objective.total_steps = STEPS
    torch.manual_seed(0)
    objective(batch)
    objective.after_step(0)
    return objective.eval()


@of_each_kind_of_file
def test_the_weight_of_each_term_is_read(path, overrides, at_tiny_size, word_vocabulary):
    config = at_tiny_size(load_train_config(path, overrides=overrides)).replace_run(
        micro_batch_size=None, global_batch_size=6
    )
    batch, options = micro_batches(config)(0)[0], config.method.options
    terms = after_a_step(config, word_vocabulary, batch)(batch).terms
    assert all(value > 0 for value in terms.values())  # twice nothing would be nothing
    for name in {name for name in map(without_width, terms) if hasattr(options, f"{name}_weight")}:
        weight = f"{name}_weight"
        twice = dataclasses.replace(options, **{weight: 2 * getattr(options, weight)})
        other = dataclasses.replace(
            config, method=dataclasses.replace(config.method, options=twice)
        )
        output = after_a_step(other, word_vocabulary, batch)(batch)
        for term, value in output.terms.items():
            factor = 2 if without_width(term) == name else 1
            torch.testing.assert_close(value, terms[term] * factor, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(output.loss.detach(), sum(output.terms.values()))


def terms_without(tables, term):
    """Yield a combination's tables with a term off.

    A ``label_term`` weighs nothing, a ``label`` goes.

    So does the label of a method with one term.
    """
    for label, table in tables.items():
        if term == f"{label}_{table['method']}":
            continue
        if term.startswith(f"{label}_"):
            yield label, table | {f"{term.removeprefix(f'{label}_')}_weight": 0.0}
        elif term != label:
            yield label, table


def without(options, term):
    """Return the options with a term off; an option that nothing reads then has its default."""
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    changes = dict(OFF.get(term, {f"{term}_weight": 0.0}))
    if hasattr(options, "terms"):
        changes = {"terms": dict(terms_without(options.terms, term))}
    while True:
        try:
            return dataclasses.replace(options, **changes)
        except ConfigError as error:
            unread = re.match(r"(\w+) has no effect with", str(error))
            if unread is None or unread[1] in changes:
                raise
            changes[unread[1]] = defaults[unread[1]]


@of_each_kind_of_file
def test_switching_a_term_off_changes_the_loss(path, overrides, at_tiny_size, word_vocabulary):
    config = at_tiny_size(load_train_config(path, overrides=overrides)).replace_run(
        micro_batch_size=None, global_batch_size=6
    )
    batch = micro_batches(config)(0)[0]
    whole = after_a_step(config, word_vocabulary, batch)(batch)
    terms = set(map(without_width, whole.terms))
    # In a combination a term is called ``label_term``.
    needed = {term for term in terms if {term, term.partition("_")[2]} & ALWAYS}
    for term in terms - needed if len(terms) > 1 else ():
        method = dataclasses.replace(config.method, options=without(config.method.options, term))
        rest = after_a_step(dataclasses.replace(config, method=method), word_vocabulary, batch)(
            batch
        )
        assert not any(value for name, value in rest.terms.items() if without_width(name) == term)
        assert rest.loss.item() != pytest.approx(whole.loss.item(), rel=1e-6)


@pytest.mark.parametrize("path", STAGED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_its_stages_are_runs_of_their_own_files(path, tmp_path):
    stages = load_stages(path, overrides=[f"output={tmp_path}"])[1]
    assert len({stage.name for stage in stages}) == len(stages) > 1
    for stage in stages:
        assert all(given.is_relative_to(tmp_path) for given in stage.inputs)


def test_each_header_says_what_the_file_repeats():
    lacking = []
    for path in ALL_FILES:
        head = path.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        header = [line for line in head if line.startswith("#")]
        if "Table" not in " ".join(header[:1]) and "No row of the paper" not in " ".join(header):
            lacking.append(path.relative_to(ROOT).as_posix())
    assert lacking == []


@pytest.mark.parametrize(
    "folder", sorted({path.parent.name for path in FILES if path.parent.parent == ROOT})
)
def test_the_rows_of_the_table_differ(folder):
    rows = [load_train_config(path) for path in FILES if path.parent.name == folder]
    assert len({str(row.replace_run(output=Path())) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == "tiny"], ids=lambda path: path.name
)
def test_a_tiny_experiment_has_the_method_of_its_row(path):
    full, tiny = (load_train_config(file).method for file in (path.parents[1] / path.name, path))
    models = {name: getattr(tiny.options, name) for name in MODELS.get(tiny.name, ())}
    if "teachers" in models:
        models["teacher_prompts"] = tiny.options.teacher_prompts
    full = dataclasses.replace(full, options=dataclasses.replace(full.options, **models))
    assert at_width(full, 32) == at_width(tiny, 32)
