import logging
import shutil

import numpy as np
import pytest

from interlingua.batches.token_store import TokenStoreWriter
from interlingua.errors import ConfigError, DataError
from interlingua.training.build import MicroBatches, build_encoder
from interlingua.training.config import train_config_from
from interlingua.training.feeds.open_feeds import batch_sizes, make_plan, open_data
from interlingua.training.machine.engine import Engine
from interlingua.vocabulary.vocabulary import Vocabulary


@pytest.fixture
def table(tiny_table, tmp_path):
    """The tiny run with labeled pairs and monolingual sentences."""
    (tmp_path / "nli.tsv").write_text(
        "en1 en2\ten3\tneutral\nen4\ten5 en6 en7\tentailment\n" * 4, encoding="utf-8"
    )
    (tmp_path / "de.txt").write_text("".join(f"de{word}\n" for word in range(30)), encoding="utf-8")
    tiny_table["data"]["labeled"] = {"paths": [str(tmp_path / "nli.tsv")], "kind": "nli"}
    tiny_table["data"]["monolingual"] = {
        "paths": [str(tmp_path / "de.txt")],
        "batch_size": 4,
        "max_sentences": 20,
    }
    return tiny_table


def without(table, *keys):
    table["data"] = {key: value for key, value in table["data"].items() if key not in keys}
    return train_config_from(table)


def test_only_the_pairs_of_the_corpus(tiny_config):
    data = open_data(tiny_config(), ("parallel",))
    assert (len(data.train["parallel"]), len(data.valid["parallel"])) == (600, 120)
    assert data.digest == data.train["parallel"].digest


def test_several_feeds_in_one_step(table):
    config = train_config_from(table)
    feeds = ("labeled", "parallel", "monolingual")
    data = open_data(config, feeds)
    batches = MicroBatches(config, data.train, 120, Engine(config.run))
    batch = batches(3)[0]
    assert list(batch) == list(feeds)
    assert [batch["labeled"].a.batch_size, batch["parallel"].a.batch_size] == [16, 16]
    assert batch["monolingual"].sentences.languages == ("deu_Latn",) * 4
    assert batches.epoch_size == 8
    assert set(data.valid) == {"parallel"}
    seen = batches.seen(2)
    assert (seen["labeled"], seen["monolingual"]) == (32, 8)
    assert seen["deu_Latn-eng_Latn"] + seen["rus_Cyrl-eng_Latn"] == 32


def test_a_file_of_all_splits_trains_on_one_and_validates_on_another(tiny_table, tmp_path):
    path = tmp_path / "sts.tsv"
    rows = [
        f"{split}\t{score}\ten1\ten2"
        for split, score in (("train", 0), ("dev", 1), ("test", 2), ("train", 5))
    ]
    path.write_text("\n".join(["split\tscore\tsentence1\tsentence2", *rows]), encoding="utf-8")
    tiny_table["data"]["labeled"] = {"paths": [str(path)], "kind": "sts", "valid": [str(path)]}
    tiny_table["method"] = {"name": "sts"}
    data = open_data(train_config_from(tiny_table), ("labeled",))
    assert [rows["labeled"].labels.tolist() for rows in (data.train, data.valid)] == [
        [0.0, 1.0],
        pytest.approx([0.2]),
    ]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(0, ["en0", "en1", "en2", "de5", "de6"]), (2, ["en0", "en1", "de5", "de6"])],
)
def test_texts_of_each_file_have_its_language(table, tmp_path, word_vocabulary, limit, expected):
    (tmp_path / "en.txt").write_text("en0\nen1\n\nen2\n", encoding="utf-8")
    (tmp_path / "de.txt").write_text("de5\nde6\n", encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("en.txt", "de.txt")]
    table["data"]["monolingual"] = {"paths": paths, "max_sentences": limit}
    column = open_data(without(table, "labeled"), ("parallel", "monolingual")).train["monolingual"]
    ids = [column.read(np.array([row])).input_ids.tolist() for row in range(len(column))]
    assert list(map(word_vocabulary.decode, ids)) == expected
    assert column.languages == tuple(
        "eng_Latn" if text.startswith("en") else "deu_Latn" for text in expected
    )


def test_the_digest_of_several_feeds_sees_each(table, tmp_path):
    config = train_config_from(table)
    feeds = ("labeled", "monolingual")
    before = open_data(config, feeds).digest
    assert open_data(config, feeds).digest == before
    with (tmp_path / "nli.tsv").open("a", encoding="utf-8") as file:
        file.write("en1\ten1\tneutral\n")
    assert open_data(config, feeds).digest != before


def test_a_feed_that_is_missing_or_not_read(table):
    with pytest.raises(ConfigError, match=r"set data\.labeled"):
        open_data(without(table, "labeled"), ("labeled", "monolingual"))
    with pytest.raises(ConfigError, match=r"remove data\.monolingual"):
        open_data(train_config_from(table), ("parallel",))


def test_a_vocabulary_without_a_corpus(table, tmp_path, word_vocabulary):
    config = without(table, "corpus", "monolingual")
    with pytest.raises(ConfigError, match=r"data\.corpus, or encoder\.path"):
        open_data(config, ("labeled",))
    build_encoder(config, word_vocabulary).save(tmp_path / "model")
    table["encoder"] = {"path": str(tmp_path / "model")}
    data = open_data(train_config_from(table), ("labeled",))
    assert data.vocabulary.digest() == word_vocabulary.digest()
    assert data.train["labeled"].labels.tolist() == [2, 1] * 4


def test_texts_in_memory_that_the_encoder_can_not_take(table):
    config = train_config_from(table)
    rows = open_data(config, ("labeled", "monolingual")).train["labeled"]
    with pytest.raises(ConfigError, match=r"data\.labeled: .* 3 tokens, .* 2"):
        make_plan("labeled", rows, config.data, batch_size=2, max_tokens=2, seed=0)


def test_the_first_feed_goes_by_the_global_batch_size(table):
    table["data"]["batch_size"] = 8
    config = train_config_from(table)
    assert batch_sizes(config, ["labeled", "parallel", "monolingual"]) == {
        "labeled": 16,
        "parallel": 8,
        "monolingual": 4,
    }
    with pytest.raises(ConfigError, match=r"remove data\.batch_size"):
        batch_sizes(config, ["parallel", "labeled"])
    table["data"]["batch_size"] = 16
    table["data"]["labeled"]["batch_size"] = 4
    config = train_config_from(table)
    assert batch_sizes(config, ["parallel", "labeled"]) == {"parallel": 16, "labeled": 4}
    with pytest.raises(ConfigError, match=r"remove data\.labeled\.batch_size"):
        batch_sizes(config, ["labeled", "parallel"])


def test_corpora_that_are_none(tiny_table, tmp_path, prepared, word_vocabulary):
    def opened(path):
        tiny_table["data"]["corpus"] = str(path)
        return open_data(train_config_from(tiny_table), ("parallel",))

    with pytest.raises(DataError, match="interlingua prepare"):
        opened(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"vocabulary\.json"):
        opened(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(prepared, copy)
    shutil.rmtree(copy / "valid")
    assert opened(copy).valid == {}
    Vocabulary(
        word_vocabulary.tokenizer.to_str(), special_tokens=word_vocabulary.special_tokens
    ).save(copy / "vocabulary")
    with pytest.raises(DataError, match="another vocabulary"):
        opened(copy)


def test_chosen_language_pairs(tiny_table):
    def opened(*names, **data):
        tiny_table["data"] |= {"language_pairs": list(names), **data}
        config = train_config_from(tiny_table)
        return config, open_data(config, ("parallel",))

    config, data = opened("en-de", max_pairs=50)
    plans = [
        make_plan("parallel", part["parallel"], config.data, batch_size=10, max_tokens=20, seed=0)
        for part in (data.train, data.valid)
    ]
    assert [plan.epoch_size for plan in plans] == [50, 50]
    assert set(plans[1].batch_at(0).a.languages) == {"deu_Latn"}
    with pytest.raises(ConfigError, match=r"en-ko; .*deu_Latn-eng_Latn"):
        opened("en-ko")


def test_a_chosen_pair_that_is_missing_is_a_warning(tiny_table, caplog):
    tiny_table["data"]["language_pairs"] = ["en-de", "en-th"]
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        assert open_data(train_config_from(tiny_table), ("parallel",)).train["parallel"]
    assert "['en-th']" in caplog.text
    assert "en-de" not in caplog.text


def test_no_validation_pairs_of_the_chosen_languages(
    tiny_table, tmp_path, prepared, word_vocabulary
):
    copy = tmp_path / "copy"
    shutil.copytree(prepared, copy)
    shutil.rmtree(copy / "valid")
    size, digest = word_vocabulary.size, word_vocabulary.digest()
    with TokenStoreWriter(copy / "valid", vocabulary_size=size, vocabulary_digest=digest) as writer:
        writer.append(("rus_Cyrl", "eng_Latn"), [[5]], [[6]])
    tiny_table["data"] |= {"corpus": str(copy), "language_pairs": ["de-en"]}
    assert open_data(train_config_from(tiny_table), ("parallel",)).valid == {}


def test_labels_of_the_other_kind(tiny_table, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\tneutral\n", encoding="utf-8")
    tiny_table["data"]["labeled"] = {"paths": [str(path)], "kind": "nli"}
    tiny_table["method"] = {"name": "sts"}
    with pytest.raises(ConfigError, match=r"kind is 'nli', .*sts .*'sts'"):
        open_data(train_config_from(tiny_table), ("labeled",))


def test_pairs_without_the_pivot_language_are_refused_before_the_first_step(tiny_table):
    tiny_table["method"] = {"name": "calibrated", "pivot": "ru"}
    with pytest.raises(ConfigError, match=r"pivot .*rus_Cyrl; .*method\.pivot"):
        open_data(train_config_from(tiny_table), ("parallel",))
    tiny_table["data"]["language_pairs"] = ["en-ru"]
    assert len(open_data(train_config_from(tiny_table), ("parallel",)).train["parallel"])
