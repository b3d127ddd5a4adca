import numpy as np
import pytest

from interlingua.batches.token_store import TokenStore
from interlingua.errors import DataError
from interlingua.preparation.output import check_not_empty, file_names, write_store, write_texts
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate
from interlingua.preparation.tokenizing import PairTokenizer
from interlingua.preparation.vocabulary import make_vocabulary
from tests.preparation.conftest import config_for, sentences


def test_the_store_holds_the_rows_of_one_fate(tmp_path, shards):
    config = config_for(tmp_path, tmp_path)
    vocabulary = make_vocabulary(shards, config, tmp_path / "made", tmp_path, StageProgress())
    tokenizer = PairTokenizer(vocabulary, tmp_path / "made" / "vocabulary", prompt="", max_tokens=4)
    tokens = write_store(tmp_path / "valid", shards, Fate.valid, tokenizer, StageProgress())
    store = TokenStore.open(tmp_path / "valid")
    assert store.language_pairs == (("deu_Latn", "eng_Latn"), ("fra_Latn", "eng_Latn"))
    assert store.counts == (2, 2)
    assert store.vocabulary_digest == vocabulary.digest()
    sources, targets = store.read(0, np.array([0, 1]))
    english, german, _ = sentences(100)[3]
    assert sources[0].tolist() == vocabulary.encode([german])[0][:4]
    assert targets[0].tolist() == vocabulary.encode([english])[0][:4]
    assert tokens == {"deu_Latn": 8, "fra_Latn": 8, "eng_Latn": 16}


def test_texts_are_in_tatoebas_layout(tmp_path, shards):
    write_texts(tmp_path / "heldout", shards, Fate.valid)
    names = sorted(path.name for path in (tmp_path / "heldout").iterdir())
    assert names == ["deu-eng.tsv", "fra-eng.tsv"]
    rows = sentences(100)
    expected = "".join(f"{german}\t{english}\n" for english, german, _ in rows[3:5])
    assert (tmp_path / "heldout" / "deu-eng.tsv").read_text() == expected


def test_file_names_tell_scripts_apart():
    names = {
        ("deu_Latn", "eng_Latn"): "deu-eng.tsv",
        ("zho_Hans", "eng_Latn"): "zho_Hans-eng.tsv",
        ("zho_Hant", "eng_Latn"): "zho_Hant-eng.tsv",
        ("deu_Latn", "zho_Hans"): "deu-zho_Hans.tsv",
    }
    assert file_names(set(names)) == names


def test_nothing_left_says_what_took_it(shards):
    check_not_empty(shards)
    for shard in shards:
        shard.fates[:] = Fate.duplicate
    with pytest.raises(DataError, match=r"no training pair .*\(duplicate 200\)"):
        check_not_empty(shards)
    with pytest.raises(DataError, match="cleaning dropped all pairs"):
        check_not_empty([])


def test_a_prompt_stands_before_every_stored_text(tmp_path, shards):
    config = config_for(tmp_path, tmp_path)
    vocabulary = make_vocabulary(shards, config, tmp_path / "made", tmp_path, StageProgress())
    tokenizer = PairTokenizer(vocabulary, tmp_path / "made", prompt="the tree ", max_tokens=None)
    write_store(tmp_path / "valid", shards, Fate.valid, tokenizer, StageProgress())
    sources, targets = TokenStore.open(tmp_path / "valid").read(0, np.array([0]))
    english, german, _ = sentences(100)[3]
    assert sources[0].tolist() == vocabulary.encode([f"the tree {german}"])[0]
    assert targets[0].tolist() == vocabulary.encode([f"the tree {english}"])[0]
    write_texts(tmp_path / "heldout", shards, Fate.valid)
    assert "the tree" not in (tmp_path / "heldout" / "deu-eng.tsv").read_text().split("\t")[0]
