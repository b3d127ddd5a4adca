import json
import random
import re
import struct
from collections import Counter

import polib
import pytest

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.errors import DataError
from tests.corpus.conftest import texts, write

PO = r"""
msgid ""
msgstr ""
"Language: {language}\n"
"Content-Type: text/plain; charset={charset}\n"
"Plural-Forms: {plurals};\n"

msgid "Save"
msgstr "Speichern"

msgctxt "verb"
msgid "Open"
msgstr "Öffnen"

#, fuzzy
msgid "Close"
msgstr "Zu"

msgid "Missing"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
{forms}

#~ msgid "Old"
#~ msgstr "Alt"
"""
GERMAN = 'msgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"'
TWO_FORMS = "nplurals=2; plural=n != 1"
RUSSIAN = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20)"
    " ? 1 : 2)"
)
ARABIC = (
    "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 :"
    " n%100>=11 ? 4 : 5"
)
READ = [
    ("Save", "Speichern"),
    ("Open", "Öffnen"),
    ("%d file", "%d Datei"),
    ("%d files", "%d Dateien"),
]


def po(path, *, language="de", charset="UTF-8", plurals=TWO_FORMS, forms=GERMAN):
    text = PO.format(language=language, charset=charset, plurals=plurals, forms=forms)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(charset))
    return path


def mo(path, **changes):
    source = po(path.with_suffix(".po"), **changes)
    polib.pofile(str(source)).save_as_mofile(str(path))
    return path


def test_po(tmp_path):
    skipped = Counter()
    path = po(tmp_path / "django.po")
    assert texts(path, skipped=skipped) == READ
    assert skipped == {"fuzzy": 1, "untranslated": 1, "obsolete": 1}
    assert next(read_pairs(path)) == TextPair("Save", "Speichern", "eng_Latn", "deu_Latn")


def test_mo_agrees_with_po(tmp_path):
    assert sorted(texts(mo(tmp_path / "django.mo"))) == sorted(READ)


@pytest.mark.parametrize("charset", ["ISO-8859-1", "UTF-8"])
def test_declared_character_sets(tmp_path, charset):
    assert ("Open", "Öffnen") in texts(po(tmp_path / "x.po", charset=charset))


@pytest.mark.parametrize(
    ("language", "plurals", "forms", "expected"),
    [
        ("ja", "nplurals=1; plural=0", ["F"], [("%d files", "F")]),
        ("pl", RUSSIAN, ["one", "few", "many"], [("%d file", "one"), ("%d files", "many")]),
        ("ar", ARABIC, list("012345"), [("%d file", "1"), ("%d files", "5")]),
        ("de", "broken", ["eine", "viele"], [("%d file", "eine"), ("%d files", "viele")]),
    ],
)
@pytest.mark.parametrize("make", [po, mo])
def test_plural_forms(tmp_path, make, language, plurals, forms, expected):
    lines = "\n".join(f'msgstr[{number}] "{form}"' for number, form in enumerate(forms))
    path = make(tmp_path / f"x.{make.__name__}", language=language, plurals=plurals, forms=lines)
    assert [pair for pair in texts(path) if "file" in pair[0]] == expected


@pytest.mark.parametrize(
    ("path", "header", "expected"),
    [
        ("locale/de/LC_MESSAGES/django.po", "", "deu_Latn"),
        ("locale/sr_Latn/LC_MESSAGES/django.po", "xx", "srp_Latn"),
        ("locale/pt_BR/LC_MESSAGES/django.po", "", "por_Latn"),
        ("po/fr.po", "", "fra_Latn"),
        ("po/whatever.po", "nb", "nob_Latn"),
        ("fi/x.po", "", "fin_Latn"),
    ],
)
def test_where_the_language_is_found(tmp_path, path, header, expected):
    assert next(read_pairs(po(tmp_path / path, language=header))).target_language == expected


def test_unknown_language_and_given_languages(tmp_path):
    path = po(tmp_path / "x-1.po", language="")
    with pytest.raises(DataError, match="the language is unknown"):
        next(read_pairs(path))
    pair = next(read_pairs(path, source_language="fr", target_language="German"))
    assert (pair.source_language, pair.target_language) == ("fra_Latn", "deu_Latn")


@pytest.mark.parametrize(
    ("broken", "line", "message"),
    [
        (b'msgidd "c"', 4, "syntax error"),
        (b'msgid "c"\nmsgstr "\xff"', 5, "character set"),
        (b'msgid "c"\nmsgstr "La moiti\xc3\xa9 des pom', 5, "closing quotation mark"),
        (b'msgid "c"\nmsgstr "', 5, "closing quotation mark"),
        (b'msgid "c"\nmsgstr ""\n"La moiti\xc3\xa9 \\"', 6, "closing quotation mark"),
        (b'#~ msgid "La', 4, "closing quotation mark"),
        (b'msgid "c"\n"La\r', 5, "closing quotation mark"),
        (b'msgid "c"', 4, "translation"),
        (b'msgctxt "x"\nmsgstr "c"', 4, "translation"),
        (b'msgid "c "quoted""\nmsgstr "d"', 4, "quotation mark"),
    ],
)
@pytest.mark.parametrize("behind", [b"", b'msgid "e"\nmsgstr "f"\n'])
def test_an_entry_that_can_not_be_read_costs_itself(tmp_path, broken, line, message, behind):
    path = tmp_path / "fr.po"
    path.write_bytes(b'msgid "a"\nmsgstr "b"\n\n' + broken + b"\n\n" * bool(behind) + behind)
    bad = BadLines()
    found = [pair[:2] for pair in read_pairs(path, bad=bad)]
    assert found == [("a", "b")] + [("e", "f")] * bool(behind)
    assert bad.count == 1
    assert re.search(rf"fr\.po:{line}: .*{message}", bad.first[0])


def test_a_catalogue_of_which_nothing_can_be_read_is_an_error(tmp_path):
    path = write(tmp_path / "fr.po", 'msgid "a\nmsgstr "b"\n')
    with pytest.raises(DataError, match=r"fr\.po:1: .*closing quotation mark"):
        next(read_pairs(path))


def test_quotes_and_backslashes_at_a_strings_end(tmp_path):
    lines = ['# "a remark', 'msgid "a"  ', 'msgstr "\\"b\\"" ', "", 'msgid "c"', '\tmsgstr "d\\\\"']
    path = write(tmp_path / "fr.po", "".join(f"{line}\r\n" for line in lines))
    assert texts(path) == [("a", '"b"'), ("c", "d\\")]


def test_broken_mo(tmp_path):
    path = mo(tmp_path / "x.mo")
    content = path.read_bytes()
    for broken, message in (
        (b"no catalogue at all", "wrong magic number"),
        (content[:-30], "incomplete"),
        (content[:40], "incomplete"),
        (content[:10], "incomplete"),
        (content.replace("Öffnen".encode(), b"\xff\xfe" + b"ffnen"), "declared character set"),
    ):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=message):
            list(read_pairs(path))


def test_big_endian_mo(tmp_path):
    path = tmp_path / "de" / "LC_MESSAGES" / "x.mo"
    path.parent.mkdir(parents=True)
    # The magic number and six numbers, then length and place of each string.
    numbers = (0x950412DE, 0, 1, 28, 36, 0, 0, 4, 44, 4, 49)
    path.write_bytes(struct.pack(">11I", *numbers) + b"Save\0Gut!\0")
    assert texts(path) == [("Save", "Gut!")]


def test_a_source_that_comes_again_is_kept(tmp_path):
    pairs = [TextPair("Open", text, "eng_Latn", "deu_Latn") for text in ("Offen", "Öffnen")]
    write_pairs(pairs, tmp_path / "x.po")
    assert list(read_pairs(tmp_path / "x.po")) == pairs
    with pytest.raises(DataError, match="cannot be compressed"):
        write_pairs(pairs, tmp_path / "x.mo.gz")


PARTS = ["", "one", " two ", r"\n", r"\"three\"", r"four\\", "# five", "\u2028six", "#~ seven"]
COMMENTS = ["# note", "#", "#. extracted", "#: file.c:3", '#| msgid "before"', "", "  ", "#~| old"]


def random_catalogue(draw, entries):
    """Draw entries with comments, split strings, flags and obsolete ones, as tools write them."""
    lines = []
    for number in range(entries):
        mark = draw.choice(["", "", "", "#~ "])
        lines += draw.choices(COMMENTS, k=draw.randrange(3))
        lines += ["#, c-format, fuzzy"] if draw.random() < 0.2 and not mark else []
        plural = ["msgid_plural"] if draw.random() < 0.3 else []
        forms = ["msgstr[0]", "msgstr[1]"] if plural else ["msgstr"]
        for keyword in ["msgid", *plural, *forms]:
            lines.append(f'{mark}{keyword} "{number} {keyword}"')
            lines += [f'{mark}"{part}"' for part in draw.choices(PARTS, k=draw.randrange(4))]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(10))
def test_entries_are_those_that_polib_reads_of_the_whole(tmp_path, seed):
    path = po(tmp_path / "messy.po")
    with path.open("a", encoding="utf-8") as file:
        file.write(random_catalogue(random.Random(seed), 40))
    expected = []
    skipped = Counter()
    for entry in polib.pofile(str(path), encoding="utf-8"):
        if entry.obsolete or entry.fuzzy:
            skipped["obsolete" if entry.obsolete else "fuzzy"] += 1
        elif entry.msgid_plural:
            forms = entry.msgstr_plural
            expected += [(entry.msgid, forms[0]), (entry.msgid_plural, forms[1])]
        elif entry.msgstr:
            expected.append((entry.msgid, entry.msgstr))
    found = Counter()
    assert texts(path, skipped=found) == expected
    assert {name: found[name] for name in skipped} == skipped
    assert len(expected) > 15


LONG_ENTRIES = {
    "comment": "# a\n" * 5000 + 'msgid "b"\n',
    "previous": '#| msgid "a"\n' * 5000 + 'msgid "b"\n',
    "string": 'msgid ""\n' + '"a"\n' * 5000,
    "obsolete": '#~ msgid ""\n' + '#~ "a"\n' * 5000 + '#~ msgstr "a"\nmsgid "b"\n',
}


@pytest.mark.parametrize("name", list(LONG_ENTRIES))
def test_many_lines_of_one_entry_are_read(tmp_path, name):
    path = po(tmp_path / "long.po")
    with path.open("a", encoding="utf-8") as file:
        file.write(f'{LONG_ENTRIES[name]}msgstr "c"\n')
    assert texts(path)[-1][1] == "c"


RICH = r"""# Translations of x.
# (c) somebody
msgid ""
msgstr ""
"Project-Id-Version: x 1\n"
"Language: de_CH\n"
"Content-Type: text/plain; charset={charset}\n"
"Plural-Forms: nplurals=2; plural=n != 1;\n"

# a translator's remark
#. for the menu
#: src/a.c:3 src/b.c:5
#, c-format
#| msgctxt "old"
#| msgid "Oppen"
msgctxt "verb"
msgid "Open"
msgstr "Öffnen"

msgctxt "adjective"
msgid "Open"
msgstr "Offen"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#, fuzzy
msgid "Save"
msgstr "Speichern"
"""


@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1"])
def test_what_came_in_goes_out(tmp_path, charset):
    path = tmp_path / "x.po"
    content = RICH.replace("{charset}", charset)
    path.write_bytes(content.encode(charset))
    pairs = list(read_pairs(path))
    assert pairs[0].target_language.region == "CH"
    write_pairs(pairs, tmp_path / "y.po")
    kept = RICH.replace("{charset}", "UTF-8").partition("\n#, fuzzy")[0]
    assert (tmp_path / "y.po").read_text(encoding="utf-8") == kept
    write_pairs(pairs, tmp_path / "y.mo")
    assert sorted(read_pairs(tmp_path / "y.mo")) == sorted(pairs)
    compiled = polib.mofile(str(tmp_path / "y.mo"))
    assert {entry.msgctxt for entry in compiled} == {"verb", "adjective", None}
    assert compiled.metadata["Project-Id-Version"] == "x 1"
    write_pairs(read_pairs(tmp_path / "y.mo"), tmp_path / "z.po")
    assert list(read_pairs(tmp_path / "z.po")) == list(read_pairs(tmp_path / "y.mo"))


def test_an_entry_without_one_of_its_forms_is_fuzzy(tmp_path):
    pairs = list(read_pairs(write(tmp_path / "x.po", RICH.replace("{charset}", "UTF-8"))))
    write_pairs([pair for pair in pairs if pair.source != "%d files"], tmp_path / "y.po")
    skipped = Counter()
    assert texts(tmp_path / "y.po", skipped=skipped) == [("Open", "Öffnen"), ("Open", "Offen")]
    assert skipped["fuzzy"] == 1


def test_a_text_that_was_changed_is_written_with_its_context(tmp_path):
    pairs = list(read_pairs(write(tmp_path / "x.po", RICH.replace("{charset}", "UTF-8"))))
    write_pairs([pairs[0]._replace(target="Auf")], tmp_path / "y.po")
    (pair,) = read_pairs(tmp_path / "y.po")
    assert (pair.target, pair.origin.message.context) == ("Auf", "verb")


def test_context_and_comments_are_fields_of_other_formats(tmp_path):
    pairs = list(read_pairs(write(tmp_path / "x.po", RICH.replace("{charset}", "UTF-8"))))
    write_pairs(pairs, tmp_path / "y.jsonl")
    first = json.loads((tmp_path / "y.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (first["context"], first["reference"]) == ("verb", "src/a.c:3 src/b.c:5")
    assert first["target_language"] == "de-CH"
