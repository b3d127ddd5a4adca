import json

import pytest

from interlingua.encoder.pair_scorer import PairScorer
from interlingua.errors import CheckpointError
from interlingua.storage.files import sha256_tree
from interlingua.training.silver_pairs import SilverConfig, silver
from tests.methods.conftest import tiny_encoder


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.tsv"
    path.write_text("".join(f"w{i} w{i + 1}\tw{i + 2} w{i}\t{i % 6}\n" for i in range(8)))
    return path


def test_found_and_scored_by_the_models_named(gold, tmp_path):
    encoder = tiny_encoder()
    encoder.save(tmp_path / "encoder")
    scorer = PairScorer(tiny_encoder()).eval()
    scorer.save(tmp_path / "cross")
    config = SilverConfig(
        gold=(gold,),
        sentence_encoder=str(tmp_path / "encoder"),
        cross_encoder=str(tmp_path / "cross"),
        neighbors=2,
    )
    report = silver(config, tmp_path / "silver")
    lines = [
        line.split("\t") for line in (tmp_path / "silver" / "silver.tsv").read_text().splitlines()
    ]
    assert len(lines) == report.pairs > 0
    scores = scorer.score([a for a, _, _ in lines], [b for _, b, _ in lines])
    assert [float(y) for _, _, y in lines] == pytest.approx((5 * scores).tolist(), abs=1e-4)
    models = json.loads((tmp_path / "silver" / "manifest.json").read_text())["models"]
    assert models["sentence_encoder"] == {
        "path": config.sentence_encoder,
        "digest": encoder.digest(),
    }
    assert models["cross_encoder"] == {
        "path": config.cross_encoder,
        "digest": sha256_tree(tmp_path / "cross"),
    }


def test_a_plain_encoder_can_not_score(gold, tmp_path):
    tiny_encoder().save(tmp_path / "encoder")
    config = SilverConfig(
        gold=(gold,),
        sentence_encoder=str(tmp_path / "encoder"),
        cross_encoder=str(tmp_path / "encoder"),
    )
    with pytest.raises(CheckpointError, match="not a cross-encoder"):
        silver(config, tmp_path / "silver")


def test_ten_neighbors_unless_asked_otherwise():
    assert SilverConfig(gold=(), sentence_encoder="x", cross_encoder="y").neighbors == 10
