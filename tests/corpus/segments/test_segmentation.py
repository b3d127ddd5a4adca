from __future__ import annotations

import sys

import pytest

from interlingua.corpus.segments import segmentation
from interlingua.corpus.segments.segmentation import segment_words
from interlingua.errors import ConfigError, MissingExtraError


def ems(text: str, language: str) -> str:
    return segment_words([text], language=language, pre_tokenizer="ems")[0]


def test_none_leaves_the_text_alone():
    assert segment_words([" A, b! "], language="eng_Latn", pre_tokenizer="none") == [" A, b! "]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("  Wait, what?  ", "eng_Latn", "wait , what ?"),
        ('It\'s 5 > 3 & "so" on.', "eng_Latn", 'it \'s 5 > 3 & " so " on .'),
        ("L'été, c'est fini.", "fra_Latn", "l' été , c' est fini ."),
    ],
)
def test_moses_for_most_languages(text, language, expected):
    pytest.importorskip("sacremoses")
    assert ems(text, language) == expected


@pytest.mark.parametrize("language", ["zho_Hans", "zho_Hant", "yue_Hant", "zh"])
def test_jieba_for_chinese(language):
    pytest.importorskip("jieba")
    assert ems("我来到北京清华大学。 OK", language) == "我 来到 北京 清华大学 。 ok"


def test_sudachi_for_japanese():
    pytest.importorskip("sudachipy")
    pytest.importorskip("sudachidict_core")
    assert ems("猫は窓の外を 見た。", "jpn_Jpan") == "猫 は 窓 の 外 を 見 た 。"


def test_segmenting_again_changes_nothing_for_words():
    pytest.importorskip("jieba")
    once = ems("我们在北京。", "zho_Hans")
    assert ems(once, "zho_Hans") == once


@pytest.mark.parametrize(
    ("language", "module", "package"),
    [
        ("eng_Latn", "sacremoses", "sacremoses"),
        ("zho_Hans", "jieba", "jieba"),
        ("jpn_Jpan", "sudachipy", "sudachipy"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, language, module, package):
    for cached in (segmentation._words, segmentation._chinese, segmentation._japanese):
        cached.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == module] + [module]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        MissingExtraError, match=rf"package {package} .*pip install .*\[pretokenizers\]"
    ):
        ems("x", language)


def test_unknown_pre_tokenizers_are_refused():
    with pytest.raises(ConfigError, match="none, ems"):
        segment_words(["x"], language="eng_Latn", pre_tokenizer="moses")
