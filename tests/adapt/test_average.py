"""Averages of weights against hand-worked numbers, the rule that chooses, and what can't be
averaged."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from interlingua.adapt.average import GridPoint, choose_point, mixture, write_average
from interlingua.adapt.development import DevelopmentScores
from interlingua.encoder.directories.model_directory import is_ours
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.language_shift import LanguageShift
from interlingua.encoder.post_pooling import Dense, PostPooling
from interlingua.errors import CheckpointError, ConfigError, DataError, InterlinguaError
from interlingua.storage.files import sha256_file
from interlingua.verbs.average import AverageOptions, average, run_average
from tests.adapt.conftest import word_encoder
from tests.encoder.builders import static_of
from tests.encoder.shapes import JINA_BERT, JINA_BERT_QK_NORM
from tests.hostile import models as hostile
from tests.methods.conftest import tiny_encoder


def point(share, retrieval, similarity):
    first = {} if retrieval is None else {"pairs": retrieval}
    return GridPoint(
        share, DevelopmentScores(first, {} if similarity is None else {"sts": similarity})
    )


def weights_of(folder):
    return load_file(folder / "model.safetensors")


@pytest.fixture
def models(tmp_path, word_vocabulary):
    """Two models of equal shape and different weights."""
    folders = [tmp_path / "start", tmp_path / "trained"]
    for seed, folder in enumerate(folders):
        word_encoder(word_vocabulary, seed).save(folder)
    return folders


@pytest.fixture
def development(tmp_path):
    """A bitext and a similarity set of invented words."""
    (tmp_path / "dev.de-en.tsv").write_text(
        "".join(f"de{n} de{n + 1}\ten{n} en{n + 1}\n" for n in range(20))
    )
    (tmp_path / "sts.en.dev.tsv").write_text(
        "".join(f"{n / 2}\ten{n} en1\ten{2 * n} en3\n" for n in range(10))
    )
    return {"pairs": [tmp_path / "dev.de-en.tsv"], "sts": [tmp_path / "sts.en.dev.tsv"]}


def test_weights_are_averaged_by_hand(tmp_path, models):
    average(models, tmp_path / "out", weights=[1, 3])
    a, b, mixed = map(weights_of, (*models, tmp_path / "out"))
    assert mixed.keys() == a.keys()
    for name, tensor in mixed.items():
        expected = (0.25 * a[name].double() + 0.75 * b[name].double()).float()
        assert torch.equal(tensor, expected)


def test_without_weights_and_data_it_is_the_mean(tmp_path, models):
    third = tmp_path / "third"
    word_encoder(Encoder.load(models[0]).vocabulary, 2).save(third)
    result = average([*models, third], tmp_path / "out")
    assert result.weights == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert result.grid == ()


@pytest.mark.parametrize("share", [0, 1])
def test_a_share_of_one_keeps_every_bit(tmp_path, models, share):
    average(models, tmp_path / "out", weights=[1 - share, share])
    assert Encoder.load(tmp_path / "out").digest() == Encoder.load(models[share]).digest()


def test_the_stored_dtype_is_kept(tmp_path, models):
    Encoder.load(models[0]).save(tmp_path / "half", dtype=torch.bfloat16)
    average([tmp_path / "half", models[1]], tmp_path / "out")
    assert {tensor.dtype for tensor in weights_of(tmp_path / "out").values()} == {torch.bfloat16}


def test_modules_behind_the_pooling_are_averaged_too(tmp_path, models):
    for value, folder in zip((1.0, 4.0), models, strict=True):
        (folder / "2_Dense").mkdir()
        save_file(
            {"linear.weight": torch.full((2, 2), value)}, folder / "2_Dense" / "model.safetensors"
        )
    write_average(models, (0.5, 0.5), tmp_path / "out")
    dense = load_file(tmp_path / "out" / "2_Dense" / "model.safetensors")
    assert dense["linear.weight"].tolist() == [[2.5, 2.5], [2.5, 2.5]]
    assert "linear.weight" not in weights_of(tmp_path / "out")


def test_the_new_model_is_a_normal_one(tmp_path, models, development):
    result = average(models, tmp_path / "out", **development, grid=[0, 0.5, 1])
    encoder = Encoder.load(tmp_path / "out")
    assert encoder.settings == Encoder.load(models[0]).settings
    assert is_ours(tmp_path / "out")
    record = json.loads((tmp_path / "out" / "average.json").read_text())
    assert [part["model"] for part in record["models"]] == [str(folder) for folder in models]
    assert record["models"][1]["sha256"] == {
        "model.safetensors": sha256_file(models[1] / "model.safetensors")
    }
    assert [part["weight"] for part in record["models"]] == list(result.weights)
    assert [one["share"] for one in record["grid"]] == [0, 0.5, 1]
    assert record["rule"] == result.rule


def test_ranges_of_the_first_model_s_vectors_are_left_out(tmp_path, models):
    first = Encoder.load(models[0])
    first.calibrate_ranges(["de1 de2", "en3 en4"])
    first.save(tmp_path / "ranged")
    assert Encoder.load(tmp_path / "ranged").settings.int8_ranges
    average([tmp_path / "ranged", models[1]], tmp_path / "out")
    assert not Encoder.load(tmp_path / "out").settings.int8_ranges


def test_each_point_of_the_grid_is_measured(tmp_path, models, development):
    measured = []
    result = run_average(AverageOptions(models, tmp_path / "out", **development), measured.append)
    assert [one.share for one in result.grid] == [step / 10 for step in range(11)]
    assert measured == list(result.grid)
    ends = [
        average([folder, folder], tmp_path / f"e{n}", **development, grid=[1])
        for n, folder in enumerate(models)
    ]
    assert [one.grid[0].scores for one in ends] == [result.grid[0].scores, result.grid[-1].scores]


def test_a_run_s_folder_stands_for_its_model(tmp_path, models):
    run = tmp_path / "run"
    Encoder.load(models[1]).save(run / "model")
    (run / "config.toml").write_text("")
    average([models[0], run], tmp_path / "out", weights=[0, 1])
    assert Encoder.load(tmp_path / "out").digest() == Encoder.load(models[1]).digest()


def test_mixtures_share_out_equally():
    assert mixture(0.6, 2) == pytest.approx((0.4, 0.6))
    assert mixture(0.6, 4) == pytest.approx((0.4, 0.2, 0.2, 0.2))


@pytest.mark.parametrize(
    ("points", "share"),
    [
        # Share 1 has P@1 80, so 79.7 is allowed and 79.6 is not.
        ([point(0, 60, 70), point(0.5, 79.7, 68), point(0.7, 79.9, 66), point(1, 80, 60)], 0.5),
        ([point(0, 60, 70), point(0.5, 79.6, 68), point(0.7, 79.9, 66), point(1, 80, 60)], 0.7),
        ([point(0, 60, 70), point(0.5, 79, 60), point(1, 80, 60)], 1),
        ([point(0.5, 80, 60), point(0.7, 80, 60)], 0.7),
        ([point(0, 60, None), point(0.5, 81, None), point(1, 80, None)], 0.5),
        ([point(0, None, 70), point(0.5, None, 72), point(1, None, 60)], 0.5),
        ([point(0, None, 70), point(1, None, 70)], 1),
    ],
)
def test_the_rule_chooses_by_hand_worked_tables(points, share):
    assert choose_point(points, max_loss=0.3)[0].share == share


def test_a_smaller_allowance_is_stricter():
    points = [point(0.5, 79.7, 68), point(1, 80, 60)]
    assert choose_point(points, max_loss=0.1)[0].share == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1]}, "weights: expected"),
        ({"weights": [1, -1]}, "weights: expected"),
        ({"weights": [0, 0]}, "weights: expected"),
        ({"weights": [1, float("nan")]}, "weights: expected"),
        ({"weights": [1, 1], "grid": [0.5]}, "remove weights"),
        ({"weights": [1, 1], "pairs": ["x.de-en.tsv"]}, "remove weights"),
        ({"grid": [0.5]}, "development data"),
        ({"grid": [0.5, 1.5], "pairs": ["x.de-en.tsv"]}, "grid: expected"),
        ({"max_loss": -1}, "max_loss"),
    ],
)
def test_options_that_contradict_are_errors(tmp_path, models, options, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in options.get("pairs", ()):
        (tmp_path / name).write_text("eins\tone\n")
    with pytest.raises(ConfigError, match=message):
        average(models, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_one_model_is_an_error(tmp_path, models):
    with pytest.raises(ConfigError, match="two models"):
        average(models[:1], tmp_path / "out")


def test_tensors_that_differ_are_named(tmp_path, models, word_vocabulary):
    word_encoder(word_vocabulary, 0, num_hidden_layers=1).save(tmp_path / "shallow")
    with pytest.raises(
        ConfigError, match=r"encoder\.layer\.1\.\S+ \(\(.*\) and missing\).* 13 more"
    ):
        average([models[0], tmp_path / "shallow"], tmp_path / "out")


def test_other_vocabularies_are_an_error(tmp_path, models):
    table = weights_of(models[0])["embeddings.word_embeddings.weight"]
    path = models[1] / "tokenizer.json"
    path.write_text(path.read_text().replace('"de0"', '"de00"'))
    (models[1] / "vocabulary.json").unlink()
    with pytest.raises(ConfigError, match="vocabularies"):
        average(models, tmp_path / "out")
    assert len(table)


def test_another_pooling_is_an_error(tmp_path, models):
    path = models[1] / "1_Pooling" / "config.json"
    values = json.loads(path.read_text()) | {"pooling_mode": "cls"}
    path.write_text(json.dumps(values))
    with pytest.raises(ConfigError, match=r"pooling \(mean, cls\)"):
        average(models, tmp_path / "out")


def test_whole_numbers_have_no_mean(tmp_path, models):
    for folder in models:
        save_file({"table": torch.ones(2, dtype=torch.int8)}, folder / "more.safetensors")
        (folder / "config.json").write_text(json.dumps({"model_type": "other"}))
    with pytest.raises(ConfigError, match="I8"):
        average(models, tmp_path / "out")


def test_missing_models_and_taken_folders_are_errors(tmp_path, models):
    with pytest.raises(CheckpointError, match="nowhere"):
        average([models[0], tmp_path / "nowhere"], tmp_path / "out")
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="--overwrite"):
        average(models, tmp_path / "out")
    average(models, tmp_path / "out", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(ConfigError, match="other files"):
        average(models, tmp_path / "mine", overwrite=True)


def test_token_types_do_not_matter(tmp_path):
    for seed, folder in enumerate(("a", "b")):
        torch.manual_seed(seed)
        tiny_encoder(type_vocab_size=2).save(tmp_path / folder)
    average([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert Encoder.load(tmp_path / "out").backbone.token_type_embeddings is not None


@pytest.mark.parametrize("shape", [JINA_BERT, JINA_BERT_QK_NORM], ids=["plain", "norms"])
def test_models_with_alibi_are_averaged(shape, tmp_path):
    for seed, folder in enumerate(("a", "b")):
        torch.manual_seed(seed)
        tiny_encoder(hidden_act="gelu", **shape).save(tmp_path / folder)
    average([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    parts = [Encoder.load(tmp_path / name).backbone.state_dict() for name in ("a", "b", "out")]
    for name, tensor in parts[2].items():
        torch.testing.assert_close(tensor, (parts[0][name] + parts[1][name]) / 2)


STARTS = (
    "layers",
    "width",
    "weights",
    "types",
    "positions",
    "activation",
    "model type",
    "cut",
    "vocabulary smaller",
)
"""Starts of the names of changes to files that average reads before it loads a model."""


@pytest.mark.parametrize("change", [name for name in hostile.CHANGES if name.startswith(STARTS)])
def test_what_loading_refuses_is_not_averaged(tmp_path, models, change):
    """Check the refusal even if all models have the same mistake."""
    hostile.CHANGES[change](models[1])
    for chosen in (models, models[::-1], [models[1], models[1]]):
        with pytest.raises(InterlinguaError):
            average(chosen, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_shifts_by_language_are_not_lost_silently(tmp_path, models):
    for folder in models:
        plain = Encoder.load(folder)
        shift = LanguageShift(["eng_Latn"], torch.ones(1, plain.dim))
        Encoder(plain.backbone, plain.vocabulary, plain.settings, None, shift).save(folder)
    with pytest.raises(ConfigError, match="shifted by language"):
        average(models, tmp_path / "out")


def test_other_activations_behind_the_pooling_are_an_error(tmp_path, models):
    for folder, activation in zip(models, ("tanh", "relu"), strict=True):
        plain = Encoder.load(folder)
        layers = PostPooling([Dense(plain.hidden_size, 4, activation=activation)])
        Encoder(plain.backbone, plain.vocabulary, plain.settings, layers).save(folder)
    with pytest.raises(ConfigError, match=r"after pooling .*Dense:tanh.*Dense:relu"):
        average(models, tmp_path / "out")


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0, 1], [1, 0]])
def test_weights_that_are_not_finite_have_no_mean(tmp_path, models, weights):
    name = "encoder.layer.0.output.dense.bias"
    for folder in models:
        stored = weights_of(folder)
        stored[name][0] = float("nan")
        save_file(stored, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"{name} contains NaN"):
        average(models, tmp_path / "out", weights=weights)
    assert not (tmp_path / "out").exists()


def test_token_vectors_are_averaged_too(tmp_path, word_vocabulary):
    folders = [tmp_path / "start", tmp_path / "trained"]
    tables = []
    for seed, folder in enumerate(folders):
        encoder = static_of(word_vocabulary, 12)
        table = encoder.backbone.word_embeddings.weight.detach()
        table.add_(seed)
        encoder.save(folder)
        tables.append(table)
    average(folders, tmp_path / "out", weights=[1, 3])
    mean = Encoder.load(tmp_path / "out")
    torch.testing.assert_close(
        mean.backbone.word_embeddings.weight.detach(), 0.25 * tables[0] + 0.75 * tables[1]
    )
    static_of(word_vocabulary, 8).save(tmp_path / "narrow")
    with pytest.raises(ConfigError, match="different shapes"):
        average([folders[0], tmp_path / "narrow"], tmp_path / "other")
    Encoder.load(folders[1]).save(tmp_path / "bytes", dtype=torch.int8)
    for pair in ([tmp_path / "bytes", folders[0]], [folders[0], tmp_path / "bytes"]):
        with pytest.raises(ConfigError, match=r"bytes: .* cannot be averaged"):
            average(pair, tmp_path / "other")


def test_products_of_two_tensors_have_no_mean(tmp_path, word_vocabulary):
    """Refuse Model2Vec's rows and weights: a mean of factors is no mean of products."""
    folders = [tmp_path / "start", tmp_path / "trained"]
    for folder in folders:
        static_of(word_vocabulary, 12).save(folder)
        path = folder / "model.safetensors"
        tensors = load_file(path)
        rows = len(next(iter(tensors.values())))
        save_file({**tensors, "weights": torch.ones(rows)}, path)
    with pytest.raises(ConfigError, match=r"several tensors .*weights.* interlingua export"):
        average(folders, tmp_path / "out")


def test_modules_after_a_table_are_averaged_too(tmp_path, word_vocabulary):
    folders = [tmp_path / "start", tmp_path / "trained"]
    for factor, folder in enumerate(folders, 1):
        encoder = static_of(word_vocabulary, 12)
        encoder.post_pooling = PostPooling([Dense(12, 6, bias=False)])
        with torch.no_grad():
            encoder.post_pooling[0].linear.weight.fill_(factor)
        encoder.save(folder)
    average(folders, tmp_path / "out", weights=[1, 1])
    mean = Encoder.load(tmp_path / "out")
    assert set(mean.post_pooling[0].linear.weight.detach().flatten().tolist()) == {1.5}
