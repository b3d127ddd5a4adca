import base64
import contextlib
import json
import struct
import time

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, models, normalizers, processors

from interlingua.errors import DataError
from interlingua.vocabulary.tokenizer_checks import _MAX_PIECES, MAX_GROWTH, check_definition
from interlingua.vocabulary.vocabulary import Vocabulary

WORDS = {"<unk>": 0, "a": 1, "[X]": 2}
TEN = normalizers.Replace("a", "a" * 10)


def tokenizer(**parts):
    made = Tokenizer(models.WordLevel(WORDS, unk_token="<unk>"))
    for name, part in parts.items():
        setattr(made, name, part)
    return made


def definition(**parts):
    return json.loads(tokenizer(**parts).to_str())


def template(single, ids):
    """Build a post-processor in JSON, which its own builder does not make."""
    processor = processors.TemplateProcessing(single="[X] $A", special_tokens=[("[X]", 2)])
    made = definition(post_processor=processor)
    made["post_processor"]["single"] = single
    token = {"id": "[X]", "ids": [2] * ids, "tokens": ["[X]"] * ids}
    made["post_processor"]["special_tokens"]["[X]"] = token
    return made


SPECIAL = {"SpecialToken": {"id": "[X]", "type_id": 0}}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}


@pytest.mark.parametrize(
    "steps", [[TEN], [TEN, TEN], [normalizers.NFKC(), normalizers.Lowercase(), TEN]]
)
def test_known_kinds_of_normalizers_pass(steps):
    check_definition(definition(normalizer=normalizers.Sequence(steps)))


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Sequence([TEN, TEN, TEN]),
        normalizers.Sequence([normalizers.Sequence([TEN, TEN]), normalizers.Sequence([TEN])]),
        normalizers.Replace(Regex("."), "b" * (MAX_GROWTH + 1)),
        normalizers.Prepend("b" * (MAX_GROWTH + 1)),
    ],
)
def test_a_normalizer_that_makes_long_texts_is_refused(normalizer):
    with pytest.raises(DataError, match="normalizer"):
        check_definition(definition(normalizer=normalizer))


LEAF = 1 << 8
A = ord("a")


def trie(changes=None):
    """Build units of a double-array trie that maps "a" to the first text."""
    units = np.zeros(512, np.uint32)
    units[A] = (0x100 ^ A) << 10 | LEAF | A
    units[0x100] = 1 << 31
    for place, unit in (changes or {}).items():
        units[place] = unit
    return units


def charsmap(text="b", *, units=None, cut=0):
    packed = (trie() if units is None else units).astype("<u4").tobytes()
    content = struct.pack("<I", len(packed)) + packed + text.encode() + b"\0"
    return base64.b64encode(content[: len(content) - cut]).decode()


def with_map(content):
    normalizer = {"type": "Precompiled", "precompiled_charsmap": content}
    return {**definition(), "normalizer": normalizer}


def mapping(**options):
    return with_map(charsmap(**options))


def test_a_whole_map_passes_and_maps():
    check_definition(mapping(text="bcd"))
    made = Tokenizer.from_str(json.dumps(mapping(text="bcd")))
    assert made.normalizer.normalize_str("xa") == "xbcd"


def test_a_map_counts_its_longest_text():
    check_definition(mapping(text="ß" * MAX_GROWTH))
    with pytest.raises(DataError, match=f"{MAX_GROWTH + 1} characters"):
        check_definition(mapping(text="ß" * (MAX_GROWTH + 1)))


DAMAGED = {
    "cut": {"cut": 20},
    "empty": {"units": trie()[:0]},
    "short": {"units": trie()[:200]},
    "root outside": {"units": trie({0: 0x300 << 10})},
    "child outside": {"units": trie({A: 0x1000 << 10 | LEAF | A})},
    "value outside": {"units": trie({0x100: 1 << 31 | 2})},
    "value inside of a character": {"units": trie({0x100: 1 << 31 | 1}), "text": "ß"},
}


@pytest.mark.parametrize("name", list(DAMAGED))
def test_a_damaged_map_is_refused(name):
    with pytest.raises(DataError, match="precompiled_charsmap"):
        check_definition(mapping(**DAMAGED[name]))


@pytest.mark.parametrize("content", ["", "!", "AAAA", "AAAAAA=="])
def test_what_is_no_map_is_refused_before_the_library_sees_it(content):
    with pytest.raises(DataError, match="precompiled_charsmap"):
        Vocabulary(json.dumps(with_map(content)), special_tokens={})


def test_random_maps_never_end_inside_of_the_library():
    draw = np.random.default_rng(0)
    for _ in range(200):
        units = draw.integers(0, 2**32, draw.choice([1, 256, 512]), np.uint32)
        made = json.dumps(mapping(units=units >> draw.choice([0, 8, 22])))
        with contextlib.suppress(DataError):
            Vocabulary(made, special_tokens={"unk_token": "<unk>"}).encode(["a b c xyz é"])


def test_templates_of_a_few_tokens_pass():
    check_definition(definition())
    check_definition(template([SPECIAL, TEXT, SPECIAL], 1))


@pytest.mark.parametrize(
    "made", [template([TEXT] * (_MAX_PIECES + 1), 1), template([SPECIAL, TEXT], _MAX_PIECES)]
)
def test_templates_that_make_long_sequences_are_refused(made):
    with pytest.raises(DataError, match="post_processor"):
        check_definition(made)


def test_a_vocabulary_that_would_fill_the_memory_is_refused():
    growing = tokenizer(normalizer=normalizers.Sequence([TEN] * 12))
    with pytest.raises(DataError, match="normalizer"):
        Vocabulary(growing.to_str(), special_tokens={"unk_token": "<unk>"})


@pytest.mark.parametrize("count", [2_000, 200_000])
@pytest.mark.parametrize(
    ("part", "inner", "step"),
    [
        ("normalizer", "normalizers", {"type": "Prepend", "prepend": "a"}),
        ("normalizer", "normalizers", {"type": "NFKC"}),
        ("pre_tokenizer", "pretokenizers", {"type": "Whitespace"}),
        ("post_processor", "processors", {"type": "ByteLevel"}),
        ("decoder", "decoders", {"type": "Fuse"}),
    ],
)
def test_thousands_of_steps_are_refused_in_a_moment(part, inner, step, count):
    made = {**definition(), part: {"type": "Sequence", inner: [step] * count}}
    started = time.process_time()
    with pytest.raises(DataError, match=part):
        check_definition(made)
    assert time.process_time() - started < 0.1


def test_what_is_put_before_a_text_adds_up():
    step = {"type": "Prepend", "prepend": "a" * (MAX_GROWTH // 10)}
    made = {**definition(), "normalizer": {"type": "Sequence", "normalizers": [step] * 11}}
    with pytest.raises(DataError, match="normalizer"):
        check_definition(made)


def test_a_vocabulary_of_thousands_of_steps_is_refused_before_it_is_made():
    step = {"type": "Prepend", "prepend": "a"}
    made = {**definition(), "normalizer": {"type": "Sequence", "normalizers": [step] * 2_000}}
    with pytest.raises(DataError, match="normalizer"):
        Vocabulary(json.dumps(made), special_tokens={"unk_token": "<unk>"})
