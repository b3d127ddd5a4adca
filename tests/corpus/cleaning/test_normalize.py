import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.corpus.cleaning.normalize import normalize_texts, replace_markup


def normalize_text(text, **options):
    return normalize_texts([text], **options)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("“a” „b“ «c» 「d」 ″e〝", '"a" "b" "c" "d" "e"'),
        ("‘a’ ‚b‛ ‹c› `d´ 『e』 it’s", "'a' 'b' 'c' 'd' 'e' it's"),
        ("well‐known‑thing −5 －", "well-known-thing -5 -"),
        ("a—b–c―d‒e︱f", "a–b–c–d–e–f"),
        ("ｆｕｌｌ　ｗｉｄｔｈ１２", "ｆｕｌｌ ｗｉｄｔｈ１２"),
        ("ﬁ A\u030a … ½", "ﬁ Å … ½"),
        ("10⁵ m², H₂O, Ⅳ, ①, ㎏, ™", "10⁵ m², H₂O, Ⅳ, ①, ㎏, ™"),
        ("  a\t\u00a0b \r\n c\u2028d ", "a b c d"),
        ("a\x00b\x07c\u200bd\ufeffe\u00adf\u202eg", "abcdefg"),
        ("e\u200b\u0301", "é"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # the zero-width non-joiner is spelling
        ("a\ud800b\ue000c", "abc"),
        ("¨", "¨"),
        ("", ""),
    ],
)
def test_spelling(text, expected):
    assert normalize_text(text) == expected


@settings(deadline=None)
@given(st.lists(st.text(), max_size=8))
def test_normalizing_is_done_after_once_and_knows_no_neighbors(texts):
    once = normalize_texts(texts)
    assert len(once) == len(texts)
    assert normalize_texts(once) == once
    assert once == [normalize_text(text) for text in texts]
    for text in once:
        assert unicodedata.is_normalized("NFC", text)
        assert text == " ".join(text.split(" ")).strip(" ")
        assert "  " not in text
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Co", "Zl", "Zp") for c in text)


@pytest.mark.parametrize(
    ("text", "stripped", "unified"),
    [
        ("Hello %(name)s!", "Hello !", "Hello {}!"),
        ("%d of %1$s, %-10.2f left", "of , left", "{} of {}, {} left"),
        ("Hi {name} and {0:.2f} and ${who} and {}", "Hi and and and", "Hi {} and {} and {} and {}"),
        ("{{ user.name }} is {% trans x %} here", "is here", "{} is {} here"),
        ("<b>bold</b> <a href='x'>link</a>", "bold link", "<>bold<> <>link<>"),
        ("one<br/>two<p>three</p>", "one two three", "one<>two<>three<>"),
        ("<0>React</0> <!-- no -->x", "React x", "<>React<> <>x"),
        ("Tom &amp; Jerry&nbsp;&#33; &#x4e2d;", "Tom & Jerry ! 中", "Tom & Jerry ! 中"),
        ("文件%s的", "文件 的", "文件{}的"),
    ],
)
def test_markup(text, stripped, unified):
    assert normalize_text(text, markup="strip") == stripped
    assert normalize_text(text, markup="unify") == unified
    assert normalize_text(text) == normalize_text(text, markup="keep")
    assert replace_markup(text, "keep") == text


PROSE = "100% of us|50% discount|a < b > c|x<y and y>z|AT&T; R&D|{ braces in prose }|<me@home.org>"


@pytest.mark.parametrize("text", PROSE.split("|"))
def test_prose_is_no_markup(text):
    assert normalize_text(text, markup="strip") == text


def test_markup_does_not_reach_over_the_end_of_a_text():
    parts = ["<b", "c>", "{", "}", "a&am", "p;"]
    assert normalize_texts(parts, markup="strip") == parts
    assert normalize_texts(["a&#10;b", "c"], markup="strip") == ["a b", "c"]
