from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from interlingua.corpus.forms.text_forms import normalizers_of
from interlingua.errors import ConfigError, DataError
from interlingua.vocabulary.sentencepiece_training import train_vocabulary
from interlingua.vocabulary.vocabulary import Vocabulary, language_tag_names, truncate
from tests.encoder.multilingual import AWKWARD, LINES, SENTENCES, TEXTS


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


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_a_text_cannot_spell_special_tokens(model_type, lowercase, tmp_path):
    lines = [(code, text) for code, text in LINES if code != "eng_Latn"]
    options = {"languages": ["rus_Cyrl"], "model_type": model_type, "lowercase": lowercase}
    trained = train_vocabulary(lines, size=700, threads=1, **options)
    trained.save(tmp_path)
    for vocabulary in (trained, Vocabulary.load(tmp_path)):
        assert vocabulary.spells_special_tokens
        for token in ("<pad>", "<unk>", "<MASK>", "<2ru>"):
            text = f"да {token}{token} нет {token}"
            (ids,) = vocabulary.encode([text])
            assert not set(vocabulary.special_ids) & set(ids)
            assert vocabulary.decode(ids) == (text.lower() if lowercase else text)


def test_a_vocabulary_made_elsewhere_reads_special_tokens_as_transformers_does(framed_vocabulary):
    assert not framed_vocabulary.spells_special_tokens
    assert framed_vocabulary.mask_id in framed_vocabulary.encode(["a <mask> b"])[0]


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


WORDS = st.sampled_from(
    [
        *"aé猫\u093f\u0301.,<▁",
        *sorted({word for text in TEXTS + AWKWARD for word in text.split(" ")}),
    ]
)


@settings(max_examples=100, deadline=None)
@given(
    words=st.lists(WORDS, max_size=40),
    limit=st.integers(1, 12),
    gap=st.sampled_from([" ", "  ", "", "\t"]),
)
def test_a_limit_keeps_the_tokens_that_the_whole_text_begins_with(
    vocabulary, framed_vocabulary, words, limit, gap
):
    text = " ".join(words[:20]) + gap + gap.join(words[20:])
    for one in (vocabulary, framed_vocabulary):
        assert one._splits_words
        (whole,) = one.encode([text])
        (cut,) = one.encode([text], max_tokens=limit)
        assert cut == truncate(whole, limit, closing_tokens=one.closing_tokens)


def test_a_beginning_of_too_few_tokens_is_not_enough(vocabulary):
    text = "\u200b" * 200 + "a b c d e f g h"  # what is not text gives no tokens
    assert vocabulary.encode([text], max_tokens=5) == [
        vocabulary.encode(["a b c d e f g h"])[0][:5]
    ]
    text = "a" + "\u200b" * 200 + " b c d e f g h"
    assert vocabulary.encode([text], max_tokens=5) == [vocabulary.encode([text])[0][:5]]


@pytest.mark.parametrize(
    ("pre_tokenizer", "splits"),
    [
        (pre_tokenizers.Metaspace(), True),
        (pre_tokenizers.Metaspace(split=False), False),
        (pre_tokenizers.ByteLevel(), True),
        (pre_tokenizers.ByteLevel(use_regex=False), False),
        (
            pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.BertPreTokenizer()]),
            True,
        ),
        (pre_tokenizers.Digits(), False),
        (None, False),
    ],
)
def test_only_where_words_are_tokenized_apart_is_a_text_cut_before(pre_tokenizer, splits):
    tokenizer = Tokenizer(
        models.BPE({"a": 0, " ": 1, "b": 2, "a b": 3, " b": 4}, [(" ", "b"), ("a", " b")])
    )
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    vocabulary = Vocabulary(tokenizer.to_str(), special_tokens={})
    assert vocabulary._splits_words == splits
    spaced = json.loads(tokenizer.to_str())
    token = {"id": 5, "content": "a c", "special": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    spaced["added_tokens"] = [token | flags]
    assert not Vocabulary(json.dumps(spaced), special_tokens={})._splits_words


@pytest.mark.parametrize(
    ("limit", "closing", "expected"),
    [(3, 0, [1, 2, 3]), (3, 1, [1, 2, 5]), (1, 2, [5]), (9, 1, [1, 2, 3, 4, 5])],
)
def test_truncation_by_hand(limit, closing, expected):
    assert truncate([1, 2, 3, 4, 5], limit, closing_tokens=closing) == expected


def test_saving_and_loading_changes_nothing(vocabulary, framed_vocabulary, tmp_path):
    for name, one in (("trained", vocabulary), ("framed", framed_vocabulary)):
        one.save(tmp_path / name)
        again = Vocabulary.load(tmp_path / name)
        assert again.digest() == one.digest()
        assert again.encode(TEXTS) == one.encode(TEXTS)
        for attribute in ("special_ids", "language_tags", "size"):
            assert getattr(again, attribute) == getattr(one, attribute)
        again.save(tmp_path / f"{name} again")
        files = sorted(file.name for file in (tmp_path / name).iterdir())
        assert [(tmp_path / name / file).read_bytes() for file in files] == [
            (tmp_path / f"{name} again" / file).read_bytes() for file in files
        ]
    assert (tmp_path / "trained" / "sentencepiece.model").is_file()


def test_digests_tell_vocabularies_apart(vocabulary, framed_vocabulary):
    special = vocabulary.special_tokens
    tags = {"deu_Latn": "<2de>"}
    renamed = Vocabulary(vocabulary._json, special_tokens=special, language_tags=tags)
    assert len({vocabulary.digest(), framed_vocabulary.digest(), renamed.digest()}) == 3


@pytest.mark.parametrize("name", ["tokenizer.json", "vocabulary.json"])
def test_damage_is_found(vocabulary, tmp_path, name):
    vocabulary.save(tmp_path)
    whole = (tmp_path / name).read_text()
    (tmp_path / name).write_text(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"not JSON|not a tokenizer"):
        Vocabulary.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"{name}: cannot be read"):
        Vocabulary.load(tmp_path)


def test_a_tokenizer_of_another_vocabulary_is_found(vocabulary, framed_vocabulary, tmp_path):
    vocabulary.save(tmp_path / "a")
    framed_vocabulary.save(tmp_path / "b")
    framed_vocabulary.save(tmp_path / "c")
    (tmp_path / "c" / "tokenizer.json").write_text(
        (tmp_path / "b" / "tokenizer.json").read_text() + "\n"
    )
    with pytest.raises(DataError, match=r"tokenizer\.json .*save the vocabulary"):
        Vocabulary.load(tmp_path / "c")
    (tmp_path / "a" / "vocabulary.json").write_text('{"format": "other"}')
    with pytest.raises(DataError, match="'other'"):
        Vocabulary.load(tmp_path / "a")


def test_roles_must_name_tokens_that_exist(vocabulary):
    with pytest.raises(DataError, match="no token '<nothing>'"):
        Vocabulary(vocabulary._json, special_tokens={"pad_token": "<nothing>"})
    bare = Vocabulary(vocabulary._json, special_tokens={"unk_token": "<unk>"})
    with pytest.raises(ConfigError, match="no mask_token, only unk_token"):
        _ = bare.mask_id


def test_tags_are_short_names_and_scripts_where_needed():
    names = language_tag_names(
        ["deu_Latn", "eng_Latn", "arz_Arab", "zho_Hant", "zho_Hans", "eng_Latn"]
    )
    assert names == {
        "arz_Arab": "<2arz>",
        "deu_Latn": "<2de>",
        "eng_Latn": "<2en>",
        "zho_Hans": "<2zh_Hans>",
        "zho_Hant": "<2zh_Hant>",
    }


def test_a_pre_tokenizing_vocabulary_wants_the_language(vocabulary):
    pytest.importorskip("sacremoses")
    ems = Vocabulary(
        vocabulary._json, special_tokens=vocabulary.special_tokens, pre_tokenizer="ems"
    )
    with pytest.raises(ConfigError, match=r"no language .*--language deu_Latn"):
        ems.encode(["Wait, what?"])
    assert ems.encode(["Wait, what?"], language="eng_Latn") == vocabulary.encode(["wait , what ?"])


def test_a_tokenizer_without_its_unknown_token_is_one_line(tmp_path):
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "<unk>"}
    content = json.dumps({"added_tokens": [], "model": model})
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(DataError, match="tokenizer"):
        Vocabulary.from_huggingface(tmp_path).encode(["a c"])


def test_forms_of_texts_are_undone_and_stored(framed_vocabulary, tmp_path):
    plain, decomposed = ["Bücher liest er"], ["Bu\u0308\u00adcher liest er"]
    assert framed_vocabulary.encode(plain) != framed_vocabulary.encode(decomposed)
    reads = framed_vocabulary.with_text_forms(["decomposed", "invisible"])
    assert reads.text_forms == ("invisible", "decomposed")
    assert reads.encode(decomposed) == reads.encode(plain) == framed_vocabulary.encode(plain)
    assert reads.as_read(decomposed[0]) == plain[0]
    assert reads.digest() != framed_vocabulary.digest()
    reads.save(tmp_path)
    again = Vocabulary.load(tmp_path)
    assert (again.text_forms, again.digest()) == (reads.text_forms, reads.digest())
    assert again.with_text_forms(()).digest() == framed_vocabulary.digest()


def test_other_libraries_undo_what_a_tokenizer_file_can(framed_vocabulary):
    reads = framed_vocabulary.with_text_forms(["decomposed", "invisible", "capitals"])
    written = reads.for_other_libraries()
    texts = ["Bu\u0308\u00adcher", "SIE LIEST BÜCHER DORT", "x"]
    assert written.encode(texts) == reads.encode(texts)
    alone = Vocabulary(written._json, special_tokens=written.special_tokens)
    assert alone.encode(texts[:1]) == reads.encode(texts[:1])
    assert framed_vocabulary.for_other_libraries() is framed_vocabulary
    # Such a file can be exported again, and its forms can be changed.
    assert written.for_other_libraries() is written
    assert written.with_text_forms(()).definition == framed_vocabulary.definition
    only = written.with_text_forms(["invisible"]).for_other_libraries()
    assert only.definition["normalizer"]["normalizers"][:-1] == normalizers_of(["invisible"])
    doubled = written.definition
    doubled["normalizer"]["normalizers"][:0] = doubled["normalizer"]["normalizers"][:2]
    assert written.with_definition(doubled).for_other_libraries().definition == written.definition


def test_a_tokenizer_s_own_composition_stays(framed_vocabulary):
    own = framed_vocabulary.definition
    own["normalizer"] = {"type": "NFC"}
    composes = framed_vocabulary.with_definition(own)
    again = composes.with_text_forms(["decomposed"]).for_other_libraries().with_text_forms(())
    assert again.definition["normalizer"] == {"type": "NFC"}


def test_a_tokenizer_file_may_lack_a_normalizer(framed_vocabulary):
    own = framed_vocabulary.definition
    del own["normalizer"]
    plain = framed_vocabulary.with_definition(own)
    assert plain.for_other_libraries() is plain
    reads = plain.with_text_forms(["invisible"])
    assert reads.for_other_libraries().definition["normalizer"] == normalizers_of(["invisible"])[0]
    assert reads.with_text_forms(()).encode(["a"]) == plain.encode(["a"])


def test_unknown_forms_of_texts_are_refused(framed_vocabulary, tmp_path):
    with pytest.raises(ConfigError, match=r"text_forms.*decomposed"):
        framed_vocabulary.with_text_forms(["nfc"])
    framed_vocabulary.save(tmp_path)
    path = tmp_path / "vocabulary.json"
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**content, "text_forms": ["nfc"]}), "utf-8")
    with pytest.raises(DataError, match="text_forms"):
        Vocabulary.load(tmp_path)


def test_what_is_no_text_is_named_with_forms_too(framed_vocabulary):
    with pytest.raises(DataError, match="int"):
        framed_vocabulary.with_text_forms(["decomposed"]).encode(["a", 3])


@pytest.mark.parametrize("known", [True, False], ids=["known form", "unknown form"])
def test_the_size_has_room_for_the_largest_id(monkeypatch, known):
    made = Tokenizer(models.WordLevel({"a": 0, "b": 70, "[UNK]": 2}, unk_token="[UNK]"))
    made.add_special_tokens(["[PAD]"])
    if not known:
        monkeypatch.setattr("interlingua.vocabulary.vocabulary._checked", lambda definition: {})
    vocabulary = Vocabulary(made.to_str(), special_tokens={})
    assert vocabulary.size == 1 + max(made.get_vocab().values())
    assert vocabulary.size >= 71
