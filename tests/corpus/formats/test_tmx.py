import pickle
import re
import tracemalloc
from collections import Counter
from xml.etree import ElementTree

import pytest

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.corpus.formats.tmx import XML_LANG
from interlingua.errors import DataError
from tests.corpus.conftest import texts, write

HEADER = (
    '<header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en"'
    ' {} datatype="x"/>'
)


START = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'


def tmx(path, units, header='srclang="en"', start=START):
    head = f'<tmx version="1.4">\n{HEADER.format(header)}'
    return write(path, f"{start}{head}\n<body>\n{units}\n</body>\n</tmx>\n")


def variant(code, text, attribute="xml:lang"):
    return f'<tuv {attribute}="{code}"><seg>{text}</seg></tuv>'


@pytest.mark.parametrize(
    ("codes", "attribute"),
    [
        (("EN-US", "DE-DE"), "xml:lang"),
        (("en", "de"), "lang"),
        (("eng", "ger"), "xml:lang"),
        (("en_GB", "deu_Latn"), "xml:lang"),
    ],
)
def test_spellings_of_languages(tmp_path, codes, attribute):
    german, english = variant(codes[1], "eins", attribute), variant(codes[0], "one", attribute)
    path = tmx(tmp_path / "x.tmx", f"<tu>{german}{english}</tu>")
    assert list(read_pairs(path)) == [TextPair("one", "eins", "eng_Latn", "deu_Latn")]


def test_which_pairs_a_unit_gives(tmp_path):
    unit = f"<tu>{variant('de', 'eins')}{variant('en', 'one')}{variant('fr', 'un')}</tu>"
    path = tmx(tmp_path / "x.tmx", unit + f"<tu>{variant('de', 'zwei')}</tu>")
    skipped = Counter()
    assert texts(path, skipped=skipped) == [("one", "eins"), ("one", "un")]
    assert skipped["no such languages"] == 1
    chosen = read_pairs(path, source_language="fr", target_language="de")
    assert list(chosen) == [TextPair("un", "eins", "fra_Latn", "deu_Latn")]
    assert [p.target for p in read_pairs(path, source_language="fr")] == ["eins", "one"]
    free = tmx(tmp_path / "y.tmx", unit, header='srclang="*all*"')
    assert texts(free) == [("eins", "one"), ("eins", "un")]


def test_inline_elements(tmp_path):
    text = (
        'a <bpt i="1">&lt;b&gt;</bpt>bold<ept i="1">&lt;/b&gt;</ept> <hi>high</hi> &amp;'
        " <ph>{0}</ph>end"
    )
    path = tmx(tmp_path / "x.tmx", f"<tu>{variant('en', text)}{variant('de', ' x ')}</tu>")
    assert next(read_pairs(path)) == TextPair("a bold high & end", "x", "eng_Latn", "deu_Latn")


@pytest.mark.parametrize(
    ("units", "line", "message"),
    [
        ("<tu>\n<tuv></tu>", 6, "not well-formed XML"),
    ],
)
def test_broken_files_name_the_line(tmp_path, units, line, message):
    path = tmx(tmp_path / "x.tmx", units)
    with pytest.raises(DataError, match=message) as caught:
        list(read_pairs(path))
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_no_body_and_an_entity_bomb(tmp_path):
    empty = tmp_path / "x.tmx"
    empty.write_text("<tmx/>")
    with pytest.raises(DataError, match="no <body>"):
        list(read_pairs(empty))
    entities = [f'<!ENTITY a "{"a" * 100}">']
    for before, name in zip("abcd", "bcde", strict=True):
        entities.append(f'<!ENTITY {name} "{f"&{before};" * 50}">')
    unit = f"<tu>{variant('en', '&e;')}{variant('de', 'x')}</tu>"
    bomb = tmx(tmp_path / "y.tmx", unit, start=f"<!DOCTYPE tmx [{''.join(entities)}]>")
    with pytest.raises(DataError, match="not well-formed XML"):
        list(read_pairs(bomb))


def test_scores_and_control_characters(tmp_path):
    pair = TextPair("a\x00b", "c", "zho_Hant", "eng_Latn", 0.25)
    assert write_pairs([pair], tmp_path / "x.tmx") == 1
    assert list(read_pairs(tmp_path / "x.tmx")) == [pair._replace(source="ab")]


def test_memory_does_not_grow_with_the_file(tmp_path):
    pairs = (TextPair(f"Satz {i} " * 10, "x", "deu_Latn", "eng_Latn") for i in range(20_000))
    write_pairs(pairs, tmp_path / "x.tmx")
    assert (tmp_path / "x.tmx").stat().st_size > 3_000_000
    tracemalloc.start()
    assert sum(1 for _ in read_pairs(tmp_path / "x.tmx")) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_500_000


def test_a_script_is_written_where_a_language_has_several(tmp_path):
    """Check ``de-Latn`` where CAT tools expect ``de``."""
    pairs = [TextPair("a", "b", "deu_Latn", "zho_Hans"), TextPair("c", "d", "srp_Cyrl", "tha_Thai")]
    write_pairs(pairs, tmp_path / "t.tmx")
    written = (tmp_path / "t.tmx").read_text(encoding="utf-8")
    assert re.findall(r'tuv xml:lang="([^"]+)"', written) == ["de", "zh-Hans", "sr-Cyrl", "th"]
    assert list(read_pairs(tmp_path / "t.tmx")) == pairs


KEPT = """<tu tuid="u-1" creationdate="20200101T000000Z" changeid="ann" srclang="en-US">
<note>for the manual</note><prop type="domain">law &amp; order</prop><prop type="score">0.1</prop>
<tuv xml:lang="en-US" changedate="20210101T000000Z"><prop type="x">y</prop>
<seg>Press <bpt i="1">&lt;b&gt;</bpt>OK<ept i="1">&lt;/b&gt;</ept>.</seg></tuv>
<tuv xml:lang="it"><seg>Premi OK.</seg></tuv>
<tuv xml:lang="fr-CA"><seg>Appuyez sur <ph x="1">{0}</ph>OK.</seg></tuv></tu>"""


def test_a_unit_keeps_what_it_holds_besides_texts(tmp_path):
    path = tmx(tmp_path / "x.tmx", KEPT, header='srclang="en-US" o-encoding="UTF-8"')
    (pair,) = read_pairs(path, source_language="en", target_language="fr")
    assert pair.score == 0.1
    write_pairs([pair._replace(score=1.25)], tmp_path / "y.tmx")
    found = ElementTree.parse(tmp_path / "y.tmx").getroot()
    assert found.find("header").get("srclang") == "en-US"
    assert found.find("header").get("o-encoding") == "UTF-8"
    (unit,) = found.iter("tu")
    assert unit.attrib == ElementTree.fromstring(KEPT).attrib
    assert unit.get("tuid") == "u-1"
    props = [(prop.get("type"), prop.text) for prop in unit.findall("prop")]
    assert props == [("score", "1.25"), ("domain", "law & order")]
    assert unit.findtext("note") == "for the manual"
    variants = unit.findall("tuv")
    assert [variant.get(XML_LANG) for variant in variants] == ["en-US", "fr-CA"]
    assert variants[0].get("changedate") == "20210101T000000Z"
    assert [inner.tag for inner in variants[0].find("seg")] == ["bpt", "ept"]
    assert variants[1].find("seg").find("ph").text == "{0}"
    assert list(read_pairs(tmp_path / "y.tmx")) == [pair._replace(score=1.25)]


def test_a_text_that_was_changed_is_written_changed(tmp_path):
    path = tmx(tmp_path / "x.tmx", KEPT)
    (pair,) = read_pairs(path, source_language="en", target_language="fr")
    turned = pair.swapped()._replace(target="Press Cancel.")
    assert pickle.loads(pickle.dumps(turned)).origin.element.get("tuid") == "u-1"
    write_pairs([turned], tmp_path / "y.tmx")
    (unit,) = ElementTree.parse(tmp_path / "y.tmx").iter("tu")
    assert [variant.get(XML_LANG) for variant in unit.findall("tuv")] == ["fr-CA", "en-US"]
    english = unit.findall("tuv")[1]
    assert (english.findtext("seg"), english.findtext("prop")) == ("Press Cancel.", "y")


REGIONS = (
    f"<tu tuid='1'>{variant('en-US', 'the color')}{variant('en-GB', 'the colour')}"
    f"{variant('de-DE', 'die Straße')}{variant('de-CH', 'die Strasse')}</tu>"
    f"<tu>{variant('en-US', 'Save')}{variant('x-loc', 'XX')}{variant('de', 'Sichern')}</tu>"
)


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("en-US", "en-GB", [("the color", "the colour")]),
        ("en-GB", "en-US", [("the colour", "the color")]),
        ("en", "en-US", [("the colour", "the color")]),
        (None, "en-GB", [("the color", "the colour")]),
        (None, "de-CH", [("the color", "die Strasse"), ("Save", "Sichern")]),
        ("de-CH", "en-GB", [("die Strasse", "the colour")]),
        ("de-AT", "en", [("Sichern", "Save")]),
        (None, None, [("the color", "die Straße"), ("Save", "Sichern")]),
        ("en", "de", [("the color", "die Straße"), ("Save", "Sichern")]),
        ("en", "en", []),
    ],
)
def test_the_requested_region_is_taken_and_no_text_is_its_own_translation(
    tmp_path, source, target, found
):
    path = tmx(tmp_path / "x.tmx", REGIONS, header='srclang="en-US"')
    assert texts(path, source_language=source, target_language=target) == found


def test_other_variants_are_counted_and_kept_in_their_unit(tmp_path):
    path = tmx(tmp_path / "x.tmx", REGIONS, header='srclang="en-US"')
    skipped = Counter()
    pairs = list(read_pairs(path, skipped=skipped))
    assert +skipped == {"other variants of a language": 2, "text in an unknown language": 1}
    assert pairs[0].target_language.region == "DE"
    write_pairs(pairs, tmp_path / "y.tmx")
    unit = next(ElementTree.parse(tmp_path / "y.tmx").iter("tu"))
    kept = [found.get(XML_LANG) for found in unit.findall("tuv")]
    assert kept == ["en-US", "de-DE", "en-GB", "de-CH"]
    chosen = read_pairs(path, source_language="en-US", target_language="de-CH")
    write_pairs(chosen, tmp_path / "z.tmx")
    unit = next(ElementTree.parse(tmp_path / "z.tmx").iter("tu"))
    assert [found.get(XML_LANG) for found in unit.findall("tuv")] == ["en-US", "de-CH"]


@pytest.mark.parametrize(
    "name", ["x.jsonl", "x.csv", "x.tmx", "x.en_US-en_GB", "x.en_US-en_GB.tsv"]
)
def test_a_region_goes_out_as_it_came_in(tmp_path, name):
    path = tmx(tmp_path / "in.tmx", REGIONS)
    pairs = list(read_pairs(path, source_language="en-US", target_language="en-GB"))
    write_pairs(pairs, tmp_path / name)
    (pair,) = read_pairs(tmp_path / name)
    assert pair == pairs[0]
    assert (pair.source_language.region, pair.target_language.region) == ("US", "GB")


def unit(number, *, english="one", german="eins"):
    return f"<tu tuid='{number}'>{variant('en', english)}{variant('de', german)}</tu>\n"


@pytest.mark.parametrize(
    "broken",
    [
        "<tu><tuv></tu>",
        f"<tu>{variant('en', 'AT&T')}{variant('de', 'x')}</tu>",
        f"<tu>{variant('en', '&nbsp;')}{variant('de', 'x')}</tu>",
        f"<tu>{variant('en', 'a < b')}{variant('de', 'x')}</tu>",
        f"<tu>{variant('en', 'no end')}",
        f"<tu tuid='a' tuid='a'>{variant('en', 'a')}{variant('de', 'x')}</tu>",
        "<tu>\x00<</tu>",
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_unit_that_can_not_be_read_costs_itself(tmp_path, broken, place):
    units = [unit(0), unit(1)]
    units.insert(place, f"{broken}\n")
    path = tmx(tmp_path / "x.tmx", "".join(units))
    bad = BadLines()
    pairs = list(read_pairs(path, bad=bad))
    assert [pair.origin.element.get("tuid") for pair in pairs] == ["0", "1"]
    assert bad.count == 1
    assert f"x.tmx:{6 + place}: " in bad.first[0]


def test_characters_that_xml_forbids_are_taken_out_and_counted(tmp_path):
    skipped = Counter()
    path = tmx(tmp_path / "x.tmx", unit(0, english="a&#x1;b\x02c&#xFFFF;&#55296;d&#228;"))
    assert texts(path, skipped=skipped) == [("abcdä", "eins")]
    assert skipped["character that XML forbids"] == 4


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        ("UTF-16", "utf-8"),
        ("ISO-8859-1", "utf-8"),
        ("windows-1252", "windows-1252"),
        ("Shift_JIS", "shift_jis"),
        ("UTF-8", "utf-16"),
        ("UTF-16", "utf-16"),
        ("utf-16le", "utf-16-le"),
        ("us-ascii", "utf-8"),
    ],
)
def test_a_wrong_declared_encoding_is_read(tmp_path, declared, written):
    text = "日本語" if written == "shift_jis" else "schön – grün"
    if written == "utf-8" and declared == "us-ascii":
        text = "grün"
    start = f'<?xml version="1.0" encoding="{declared}"?>\n'
    units = unit(0, german=text).replace('"de"', '"ja"' if written == "shift_jis" else '"de"') * 3
    path = tmx(tmp_path / "x.tmx", units, start=start)
    path.write_bytes(path.read_text(encoding="utf-8").encode(written))
    assert texts(path) == [("one", text)] * 3


def test_a_unit_in_another_encoding_costs_itself(tmp_path):
    path = tmx(tmp_path / "x.tmx", unit(0) + unit(1, german="gr@n") + unit(2, german="grün"))
    path.write_bytes(path.read_bytes().replace(b"gr@n", b"gr\xfcn"))
    bad = BadLines()
    assert [pair.target for pair in read_pairs(path, bad=bad)] == ["eins", "grün"]
    assert "utf-8" in bad.first[0]


def test_namespaces_and_texts_without_segments(tmp_path):
    body = "<body><x:tu><x:tuv lang='en'>Hi <x:ph>{0}</x:ph>you</x:tuv><x:tuv lang='de'><x:note>n"
    body += "</x:note>Hallo</x:tuv></x:tu></body>"
    path = write(tmp_path / "x.tmx", f"<x:tmx xmlns:x='u'><x:header/>{body}</x:tmx>")
    path.write_text(path.read_text().replace("<body>", "<x:body>").replace("</body>", "</x:body>"))
    pairs = list(read_pairs(path))
    assert [pair[:2] for pair in pairs] == [("Hi you", "Hallo")]
    write_pairs(pairs, tmp_path / "y.tmx")
    assert texts(tmp_path / "y.tmx") == [("Hi you", "Hallo")]
