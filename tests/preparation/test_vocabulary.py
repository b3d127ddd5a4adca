import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.preparation.config import VocabularyConfig
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate
from interlingua.preparation.vocabulary import make_vocabulary
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.preparation.conftest import config_for


def made(shards, folder, **vocabulary):
    settings = VocabularyConfig(**({"size": 120} | vocabulary))
    config = config_for(folder, folder, vocabulary=settings)
    return make_vocabulary(shards, config, folder / "made", folder, StageProgress())


@pytest.fixture
def model(shards, tmp_path):
    """A model with a vocabulary that is made of the shards; then one shard is left."""
    torch.manual_seed(0)
    full = made(shards, tmp_path)
    shape = BackboneConfig.preset("ems-tiny", vocab_size=full.size)
    encoder = Encoder.from_scratch(shape, full).eval()
    encoder.save(tmp_path / "model")
    for shard in shards[1:]:
        shard.fates[:] = Fate.duplicate
    return encoder


def test_the_vocabulary_sees_every_training_sentence_once(tmp_path, shards, monkeypatch):
    seen = []

    def train(sample, **options):
        seen.extend(sample)
        assert options["size"] == 120
        assert options["languages"] == ["deu_Latn", "eng_Latn", "fra_Latn"]
        return original(seen, **options)

    from interlingua.vocabulary import sentencepiece_training

    original = sentencepiece_training.train_vocabulary
    monkeypatch.setattr(sentencepiece_training, "train_vocabulary", train)
    vocabulary = made(shards, tmp_path)
    assert len(seen) == len(set(seen)) == 3 * 98
    assert sum(language == "eng_Latn" for language, _ in seen) == 98
    assert set(vocabulary.language_tags) == {"deu_Latn", "eng_Latn", "fra_Latn"}
    assert Vocabulary.load(tmp_path / "made" / "vocabulary").digest() == vocabulary.digest()


def test_a_vocabulary_can_be_taken_over(tmp_path, shards):
    vocabulary = made(shards, tmp_path)
    vocabulary.save(tmp_path / "saved")
    assert made(shards, tmp_path, path=str(tmp_path / "saved")).digest() == vocabulary.digest()
    (tmp_path / "hf").mkdir()
    (tmp_path / "saved" / "tokenizer.json").rename(tmp_path / "hf" / "tokenizer.json")
    theirs = made(shards, tmp_path, path=str(tmp_path / "hf"))
    assert theirs.encode(["the tree"]) == vocabulary.encode(["the tree"])


@pytest.mark.parametrize(("is_small", "count"), [(False, 0), (True, 1)])
def test_trimming_to_few_pairs_warns_with_its_numbers(
    tmp_path, shards, model, monkeypatch, caplog, is_small, count
):
    full = model.vocabulary
    rows = sum(shards[0].count(fate) for fate in (Fate.train, Fate.valid))
    monkeypatch.setattr("interlingua.preparation.vocabulary.SMALL_CORPUS", rows + is_small)
    with caplog.at_level("WARNING", "interlingua"):
        caplog.clear()
        vocabulary = made(shards, tmp_path, path=str(tmp_path / "model"), trim=True)
    said = [record.getMessage() for record in caplog.records if "trim" in record.getMessage()]
    assert len(said) == count
    for message in said:
        assert (
            f"{vocabulary.size:,} of {full.size:,} pieces, taken from the texts of {rows:,} pairs"
            in message
        )
        assert "remove trim" in message


def test_a_model_is_trimmed_to_the_pairs(tmp_path, shards, model):
    vocabulary = made(shards, tmp_path, path=str(tmp_path / "model"), trim=True)
    assert vocabulary.size < model.vocabulary.size
    backbone = Encoder.load(tmp_path / "made" / "backbone")
    assert backbone.vocabulary.digest() == vocabulary.digest()
    sources, targets = next(shards[0].blocks(shards[0].fates == Fate.valid))
    texts = [*sources, *targets]
    assert abs(backbone.encode(texts) - model.encode(texts)).max() < 1e-6


def test_trimming_to_a_size_logs_what_is_spelled_otherwise(tmp_path, shards, caplog):
    full = made(shards, tmp_path, model_type="unigram")
    Encoder.from_scratch(BackboneConfig.preset("ems-tiny", vocab_size=full.size), full).save(
        tmp_path / "model"
    )
    exact = made(shards, tmp_path, path=str(tmp_path / "model"), trim=True)
    size = exact.size - 10
    with caplog.at_level("INFO", "interlingua"):
        small = made(shards, tmp_path, path=str(tmp_path / "model"), trim=True, max_size=size)
    assert small.size in (size, size + 1)  # and the piece of lowest score
    assert any("% of all tokens" in message for message in caplog.messages)
    assert Encoder.load(tmp_path / "made" / "backbone").vocabulary.digest() == small.digest()
