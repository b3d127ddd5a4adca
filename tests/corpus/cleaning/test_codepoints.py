import unicodedata

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.corpus.cleaning.codepoints import (
    PLANES,
    decode,
    encode_codepoints,
    find_text_bounds,
    in_categories,
    join_lines,
)

texts = st.lists(st.text(st.characters(exclude_characters="\n")), max_size=8)


@settings(deadline=None)
@given(texts)
def test_segments_are_the_texts(lines):
    points = find_text_bounds(encode_codepoints(join_lines(lines)))
    assert [
        decode(points.codes[start : start + span - 1])
        for start, span in zip(points.starts, points.spans, strict=True)
    ] == lines


def test_a_line_feed_inside_a_text_does_not_make_two():
    assert join_lines(["a\nb", "", "c"]) == "a b\n\nc\n"
    assert join_lines([]) == ""
    assert join_lines([""]) == "\n"


def test_lone_surrogates_pass_through():
    assert decode(encode_codepoints("a\ud800b")) == "a\ud800b"


def test_categories_are_those_of_unicodedata():
    marks = in_categories(("L", "Mn", "Cf"))
    assert len(marks) == PLANES
    sample = np.random.default_rng(0).integers(0, 0x32000, 20_000)
    for code in [*sample, 0xE0001, 0xE0100, 0x41, 0x200B]:
        category = unicodedata.category(chr(code))
        if category != "Cn":  # the planes of ideographs count as assigned as a whole
            assert marks[code] == category.startswith(("L", "Mn", "Cf")), hex(code)
