"""HTML and Markdown: blocks, and what is not shown."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents import read_document
from interlingua.corpus.documents.markdown import markdown_blocks, plain_markdown
from interlingua.corpus.documents.markup import parse_markup
from interlingua.corpus.documents.units import units_of


def html_units(content):
    return [tuple(unit) for unit in units_of(parse_markup(content).blocks)]


def test_tags_without_ends():
    content = "<ul><li>a<li>b<ol><li>c</ol><li>d</ul><table><tr><td>1<td>2<tr><td>3</table><p>e<p>f"
    assert html_units(content) == [
        ("a", "item", 1), ("b", "item", 1), ("c", "item", 2), ("d", "item", 1),
        ("1", "cell", 0), ("2", "cell", 0), ("3", "cell", 0),
        ("e", "paragraph", 0), ("f", "paragraph", 0),
    ]  # fmt: skip


def test_lists_in_cells_and_definitions():
    content = "<table><td><ul><li>x</ul>y</table><dl><dt>name<dd>value</dl></li></td>z"
    assert html_units(content) == [
        ("x", "item", 1), ("y", "cell", 0), ("name", "item", 1), ("value", "item", 1),
        ("z", "paragraph", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("<p>one<br>two<br/><br>three", ["one two", "three"]),
        ("<pre>a\n  b</pre><p>c", ["a b", "c"]),
        ("<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>を読む", ["漢字を読む"]),
        ("<ruby>漢<rt>かん</ruby>と<ruby>字<rt>じ</ruby>", ["漢と字"]),
        ("<p>a<script>x</script><style>y</style><template><p>z</template>b", ["ab"]),
        ("<script src='a'/><p>shown</p>", ["shown"]),
        ("<!-- no --><p>a&nbsp;b &lt;c&gt; &#8212;", ["a b <c> —"]),
        ("<noscript>enable</noscript><p>a<b>b</b> <i>c</i>", ["ab c"]),
    ],
)
def test_what_is_shown(content, texts):
    assert [unit[0] for unit in html_units(content)] == texts


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ('<html lang="de-CH">', "deu_Latn"),
        ('<html xml:lang="el">', "ell_Grek"),
        ('<html lang=""><body lang="ja">', "jpn_Jpan"),
        ('<meta http-equiv="Content-Language" content="ru">', "rus_Cyrl"),
        ('<html lang="en, de">', ""),
        ('<html lang="und">', ""),
        ('<html lang="nonsense">', ""),
        ("<html>", ""),
    ],
)
def test_declared_language(head, code):
    assert parse_markup(f"{head}<p lang='fr'>x").language == code


def test_markdown_blocks():
    content = (
        '# A *title* {#id}\n\nOne [link](http://x.y "t") and `co*de*`,\nwrapped.\n\n'
        "* item\n  goes on\n    1. inner\n* last\n\n> quoted\n> text\n\n"
        "| a | b\\|c |\n|---|:-:|\n| d | |\n\n"
        "```py\nx = 1\n```\n\n    indented\n\n![image](a.png)\n\n[ref]: http://x\n\n---\n\nend<br>\n"
    )
    assert [tuple(unit) for unit in units_of(markdown_blocks(content))] == [
        ("A title", "heading", 1),
        ("One link and co*de*, wrapped.", "paragraph", 0),
        ("item goes on", "item", 1),
        ("inner", "item", 2),
        ("last", "item", 1),
        ("quoted text", "paragraph", 0),
        ("a", "cell", 0), ("b|c", "cell", 0), ("d", "cell", 0),
        ("x = 1", "code", 0),
        ("indented", "code", 0),
        ("image", "paragraph", 0),
        ("end", "paragraph", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("**bold** and __strong__ ~~gone~~", "bold and strong gone"),
        ("snake_case_name 2 * 3 * 4", "snake_case_name 2 * 3 * 4"),
        (r"\*not\* <https://a.b> &amp; &copy;", "*not* https://a.b & ©"),
        ("[![badge](x.svg)](http://y)", "badge"),
        ("a < b > c", "a < b > c"),
        ("`` a ` b ``", " a ` b "),
    ],
)
def test_marks_inside_of_a_block(text, plain):
    assert plain_markdown(text) == plain


def test_a_document_without_text_is_refused(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<html><script>x</script></html>")
    with pytest.raises(ValueError, match=r"a\.html"):
        read_document(path)
