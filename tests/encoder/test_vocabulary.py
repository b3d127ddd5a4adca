from __future__ import annotations

import pytest

from interlingua.encoder.vocabulary import Vocabulary, language_tag_names, truncate
from interlingua.encoder.vocabulary_training import train_vocabulary
from interlingua.errors import ConfigError, DataError

from .multilingual import LINES, SENTENCES, TEXTS


@pytest.fixture(scope="module")
def vocabulary():
    return train_vocabulary(LINES, size=700, languages=list(SENTENCES), threads=1)


def test_special_tokens_and_tags_stand_first(vocabulary):
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.mask_id) == (0, 1, 2)
    assert list(vocabulary.language_tags) == sorted(SENTENCES)
    assert list(vocabulary.language_tags.values()) == list(range(3, 3 + len(SENTENCES)))
    assert vocabulary.special_ids == tuple(range(3 + len(SENTENCES)))
    assert vocabulary.size == 700


def test_texts_become_ids_and_texts_again(vocabulary):
    ids = vocabulary.encode(["Die Katze saß  auf der Matte."])[0]
    assert min(ids) > vocabulary.special_ids[-1]
    assert vocabulary.decode(ids) == "die katze saß auf der matte."
    assert vocabulary.encode(iter(TEXTS)) == [vocabulary.encode([text])[0] for text in TEXTS]


def test_many_texts_are_encoded_in_their_order(vocabulary):
    words = [str(number) for number in range(5000)]
    assert [vocabulary.decode(ids) for ids in vocabulary.encode(words)] == words


def test_no_sequence_is_empty(vocabulary, framed_vocabulary):
    assert vocabulary.encode(["", "  "]) == [[vocabulary.unk_id]] * 2
    assert [len(ids) for ids in framed_vocabulary.encode([""])] == [2]


def test_long_texts_are_cut_and_keep_their_end(vocabulary, framed_vocabulary):
    text = "the cat sat on the mat"
    whole = vocabulary.encode([text])[0]
    assert vocabulary.encode([text], max_tokens=4) == [whole[:4]]
    assert vocabulary.encode([text], max_tokens=100) == [whole]
    framed = framed_vocabulary.encode([text])[0]
    assert (vocabulary.closing_tokens, framed_vocabulary.closing_tokens) == (0, 1)
    assert (vocabulary.opening_tokens, framed_vocabulary.opening_tokens) == (0, 1)
    assert framed_vocabulary.encode([text], max_tokens=5) == [[*framed[:4], framed[-1]]]


@pytest.mark.parametrize(
    ("limit", "closing", "expected"), [(3, 0, [1, 2, 3]), (3, 1, [1, 2, 5]), (1, 2, [5]), (5, 1, [1, 2, 3, 4, 5])]
)
def test_truncation_by_hand(limit, closing, expected):
    assert truncate([1, 2, 3, 4, 5], limit, closing_tokens=closing) == expected


def test_saving_and_loading_changes_nothing(vocabulary, framed_vocabulary, tmp_path):
    for name, one in (("trained", vocabulary), ("framed", framed_vocabulary)):
        one.save(tmp_path / name)
        again = Vocabulary.load(tmp_path / name)
        assert again.digest() == one.digest()
        assert again.encode(TEXTS) == one.encode(TEXTS)
        assert (again.special_ids, again.language_tags, again.size) == (one.special_ids, one.language_tags, one.size)
        again.save(tmp_path / f"{name} again")
        files = sorted(file.name for file in (tmp_path / name).iterdir())
        assert [(tmp_path / name / file).read_bytes() for file in files] == [
            (tmp_path / f"{name} again" / file).read_bytes() for file in files
        ]
    assert (tmp_path / "trained" / "sentencepiece.model").is_file()


def test_digests_tell_vocabularies_apart(vocabulary, framed_vocabulary):
    renamed = Vocabulary(
        vocabulary._json,
        special_tokens=vocabulary.special_tokens,
        language_tags={"deu_Latn": "<2de>"},
    )
    assert len({vocabulary.digest(), framed_vocabulary.digest(), renamed.digest()}) == 3


@pytest.mark.parametrize("name", ["tokenizer.json", "vocabulary.json"])
def test_damage_is_found(vocabulary, tmp_path, name):
    vocabulary.save(tmp_path)
    whole = (tmp_path / name).read_text()
    (tmp_path / name).write_text(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"not JSON|not a tokenizer"):
        Vocabulary.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"{name}: can't be read"):
        Vocabulary.load(tmp_path)


def test_a_tokenizer_of_another_vocabulary_is_found(vocabulary, framed_vocabulary, tmp_path):
    vocabulary.save(tmp_path / "a")
    framed_vocabulary.save(tmp_path / "b")
    framed_vocabulary.save(tmp_path / "c")
    (tmp_path / "c" / "tokenizer.json").write_text((tmp_path / "b" / "tokenizer.json").read_text() + "\n")
    with pytest.raises(DataError, match=r"tokenizer\.json is not the one saved"):
        Vocabulary.load(tmp_path / "c")
    (tmp_path / "a" / "vocabulary.json").write_text('{"format": "other"}')
    with pytest.raises(DataError, match="format 'other'"):
        Vocabulary.load(tmp_path / "a")


def test_roles_must_name_tokens_that_exist(vocabulary):
    with pytest.raises(DataError, match="no token '<nothing>'"):
        Vocabulary(vocabulary._json, special_tokens={"pad_token": "<nothing>"})
    bare = Vocabulary(vocabulary._json, special_tokens={"unk_token": "<unk>"})
    with pytest.raises(ConfigError, match="no mask_token, only unk_token"):
        _ = bare.mask_id


def test_tags_are_short_names_and_scripts_where_needed():
    names = language_tag_names(["deu_Latn", "eng_Latn", "arz_Arab", "zho_Hant", "zho_Hans", "eng_Latn"])
    assert names == {
        "arz_Arab": "<2arz>",
        "deu_Latn": "<2de>",
        "eng_Latn": "<2en>",
        "zho_Hans": "<2zh_Hans>",
        "zho_Hant": "<2zh_Hant>",
    }


def test_a_pre_tokenizing_vocabulary_wants_the_language(vocabulary):
    pytest.importorskip("sacremoses")
    ems = Vocabulary(vocabulary._json, special_tokens=vocabulary.special_tokens, pre_tokenizer="ems")
    with pytest.raises(ConfigError, match="no language was given"):
        ems.encode(["Wait, what?"])
    assert ems.encode(["Wait, what?"], language="eng_Latn") == vocabulary.encode(["wait , what ?"])
