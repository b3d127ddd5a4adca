import pickle

from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate
from interlingua.preparation.tokenizing import PairTokenizer, pair_blocks
from interlingua.preparation.vocabulary import make_vocabulary
from tests.preparation.conftest import config_for, sentences


def test_another_process_reads_the_vocabulary_and_gives_the_same(tmp_path, shards):
    config = config_for(tmp_path, tmp_path)
    vocabulary = make_vocabulary(shards, config, tmp_path, tmp_path, StageProgress())
    tokenizer = PairTokenizer(vocabulary, tmp_path / "vocabulary", prompt="the ", max_tokens=3)
    blocks = list(pair_blocks(shards, Fate.valid))
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.vocabulary is not vocabulary
    assert copy.vocabulary is pickle.loads(pickle.dumps(tokenizer)).vocabulary  # read once
    english, german, _ = sentences(100)[3]
    expected = [vocabulary.encode([f"the {text}"])[0] for text in (german, english)]
    for same in (tokenizer, copy):
        block = same.tokenize(blocks[0])
        assert block.lengths[:2].tolist() == [min(3, len(ids)) for ids in expected]
        assert block.ids[:3].tolist() == expected[0][:3]
        assert int(block.lengths.sum()) == len(block.ids)
    whole = PairTokenizer(vocabulary, tmp_path, prompt="the ", max_tokens=None)
    assert whole.longest(blocks[0])[0] == max(map(len, expected))
