"""Rules on the form of two texts: for each a list of pairs that it reports, and of pairs that it
must not report, in many languages."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.mining.checks import Checker, CheckPlan, Pairs, find_check
from interlingua.mining.rules.consistency import OneSource, OneTranslation
from interlingua.mining.rules.keys import count_keys
from interlingua.mining.rules.placeholders import placeholders
from interlingua.mining.rules.punctuation import ending
from interlingua.mining.rules.rule import PairRule
from interlingua.mining.rules.tags import inline_tags, is_nested
from interlingua.mining.rules.units import units_of_numbers

CODES = {
    "de": "deu_Latn",
    "en": "eng_Latn",
    "fr": "fra_Latn",
    "es": "spa_Latn",
    "ru": "rus_Cyrl",
    "el": "ell_Grek",
    "ja": "jpn_Jpan",
    "zh": "zho_Hans",
    "ko": "kor_Hang",
    "ar": "arb_Arab",
    "he": "heb_Hebr",
    "hi": "hin_Deva",
    "th": "tha_Thai",
    "tr": "tur_Latn",
    "hy": "hye_Armn",
    "bn": "ben_Beng",
    "am": "amh_Ethi",
    "ur": "urd_Arab",
    "fi": "fin_Latn",
    "pl": "pol_Latn",
}
WRONG = {
    "placeholders": [
        ("en-de", "Delete {0} files", "Dateien löschen"),
        ("en-de", "Hello {name}", "Hallo {Name}"),
        ("en-fr", "%s of %s", "%s"),
        ("en-ru", "%d files", "%s файлов"),
        ("en-ja", "%1$s sent %2$s", "%1$sが送信しました"),
        ("en-es", "Hello, %(name)s!", "¡Hola, %(nombre)s!"),
        ("en-de", "Hi {{user.name}}", "Hallo {{user}}"),
        ("en-pl", "Path: ${home}", "Ścieżka: $(home)"),
        ("en-ar", "{count, plural, one {# file} other {# files}}", "عدد الملفات"),
        ("en-zh", "%@ likes this", "喜欢这个"),
        ("en-fr", "Page %1 of %2", "Page %1"),
        ("en-he", "{} of {}", "{} מתוך"),
        ("en-ko", "%d%% of %s", "%d%%"),
        ("en-hi", "{0} and {1}", "{0} और {2}"),
        ("en-de", "{gender, select, male {he} female {she} other {they}}", "{gender}"),
        ("en-tr", "{date, date, short}", "{date, time, short}"),
        ("en-de", "%{count} files", "Dateien"),
    ],
    "tags": [
        ("en-de", "a <b>bold</b> word", "ein fettes Wort"),
        ("en-fr", "<i>one</i>", "<b>un</b>"),
        ("en-ja", 'Click <a href="x">here</a>', "ここをクリック</a>"),
        ("en-ru", '<g id="1">text</g>', '<g id="2">текст</g>'),
        ("en-ar", '<x id="1"/> and <x id="2"/>', '<x id="1"/> و'),
        ("en-zh", "line<br/>line", "行行"),
        ("en-de", "<b><i>x</i></b>", "<b><i>x</b></i>"),
        ("en-es", "plain", "<em>llano</em>"),
        ("en-hi", '<ph name="p"/> files', "फ़ाइलें"),
        ("en-ko", "<b>one</b> <b>two</b>", "<b>하나</b> 둘"),
        ("en-he", "<mark>x</mark>", "<mark>x<mark>"),
        ("en-fr", '<bpt i="1"/>a<ept i="1"/>', '<bpt i="1"/>a'),
        ("en-pl", "<custom>x</custom>", "x"),
    ],
    "units": [
        ("en-de", "5 kg of sand", "5 g Sand"),
        ("en-ru", "10 km away", "10 см"),
        ("en-fr", "20 °C", "20 °F"),
        ("en-zh", "3 kg", "3 公里"),
        ("en-hi", "५ km", "5 किग्रा"),
        ("en-ar", "٢٠ km", "20 كغ"),
        ("en-es", "100 km/h", "100 mph"),
        ("en-fr", "4 GB of memory", "4 Mo de mémoire"),
        ("en-de", "1,000 MHz", "1.000 GHz"),
        ("en-ja", "12 cm", "12mm"),
        ("en-ru", "2.5 mg", "2,5 мл"),
        ("en-de", "50 %", "50 ‰"),
        ("en-tr", "30 kg", "%30"),
        ("en-fi", "8 lb", "8 kg"),
    ],
    "ending": [
        ("en-de", "Where is it?", "Wo ist es."),
        ("en-de", "Name:", "Name"),
        ("en-es", "Where is it?", "Dónde está?"),
        ("en-ru", "It is here.", "Где это?"),
        ("en-ar", "Why?", "لماذا."),
        ("en-zh", "Choose a file:", "选择文件。"),
        ("en-el", "Where?", "Πού."),
        ("en-hi", "What is this?", "यह क्या है।"),
        ("en-ja", "Save the file.", "保存しますか？"),
        ("en-fr", "Options:", "Options"),
        ("en-he", "Name", "שם:"),
        ("en-hy", "Where is it?", "Այն այստեղ է։"),
        ("en-tr", "Is it open?", "Açık!"),
        ("en-ur", "Is it good?", "یہ اچھا ہے۔"),
    ],
    "spaces": [
        ("en-de", "Name: ", "Name:"),
        ("en-fr", " and", "et"),
        ("en-ru", "line\n", "строка"),
        ("en-es", "a", " un"),
        ("en-zh", "file ", "文件"),
        ("en-ar", "\tx", "س"),
        ("en-ja", "text", "テキスト\n"),
        ("en-he", "a ", "א\n"),
        ("en-hi", "of ", "का"),
        ("en-ko", " in", "에"),
        ("en-pl", "word", "słowo "),
        ("en-el", "x\n", "x "),
    ],
    "keys": [
        ("en-de", "&File", "Datei"),
        ("en-fr", "_Open", "Ouvrir"),
        ("en-ru", "~View", "Вид"),
        ("en-ja", "&Save", "保存"),
        ("en-zh", "_Edit", "编辑"),
        ("en-es", "Save &As...", "Guardar como..."),
        ("en-de", "Help", "&Hilfe"),
        ("en-tr", "E&xit", "Çıkış"),
        ("en-ar", "_Help", "مساعدة"),
        ("en-ko", "Close _window", "창 닫기"),
        ("en-he", "Delete", "_מחיקה"),
        ("en-pl", "~Insert", "Wstaw"),
        ("en-hi", "&Tools", "उपकरण"),
    ],
}
RIGHT = {
    "placeholders": [
        ("en-de", "%s of %s", "%2$s von %1$s"),
        ("en-fr", "50% done", "50 % fini"),
        ("en-tr", "5% off", "%5 indirim"),
        ("en-ar", "9 % of people", "%9 من الناس"),
        ("en-de", "{0} and {1}", "{1} und {0}"),
        ("en-ja", "%d files", "%d個のファイル"),
        ("en-ko", "%u seconds", "%u초"),
        (
            "en-ru",
            "{count, plural, one {# file} other {# files}}",
            "{count, plural, one {# файл} few {# файла} many {# файлов} other {# файла}}",
        ),
        ("en-es", "{ color: red }", "{ color: rojo }"),
        ("en-zh", "100%sure", "百分之百确定"),
        ("en-he", "{} of {}", "{1} מתוך {0}"),
        ("en-de", "%5d bytes", "%d Bytes"),
        ("en-hi", "${home}/bin", "${home}/bin"),
        ("en-pl", "%i items", "%d elementów"),
        ("en-fr", "{n:,.2f} euros", "{n:.2f} euros"),
        ("en-fi", "100%% of %s", "%s: 100 %"),
        ("en-de", "Hi {name}, {name}!", "Hallo {name}!"),
    ],
    "tags": [
        ("en-de", "usage: cp <file>", "Aufruf: cp <Datei>"),
        ("en-fr", "a < b and c > d", "a < b et c > d"),
        ("en-ja", "<b>x</b>", "<b>エックス</b>"),
        ("en-ru", "line<br>line", "строка<br/>строка"),
        ("en-ar", '<x id="1"/> a <x id="2"/>', '<x id="2"/> ب <x id="1"/>'),
        ("en-de", '<a href="/en">x</a>', '<a href="/de">x</a>'),
        ("en-zh", "5 <3", "5 <3"),
        ("en-es", "<B>x</B>", "<b>x</b>"),
        ("en-he", "mail <user@example.org>", "דואר <user@example.org>"),
        ("en-hi", "<p>one<p>two", "<p>एक<p>दो"),
        ("en-ko", "<g id='1'>a</g>", '<g id="1">가</g>'),
        ("en-pl", "x <- y", "x <- y"),
        ("en-fr", "<b>a", "<b>un"),
        ("en-el", "vector<int>", "vector<int>"),
    ],
    "units": [
        ("en-de", "5 kg", "5 Kilogramm"),
        ("en-ru", "10 km", "10 км"),
        ("en-fr", "1,000 MB", "1 000 Mo"),
        ("en-zh", "20 km", "20公里"),
        ("en-hi", "५ kg", "5 किग्रा"),
        ("en-ar", "٢٠ كم", "20 km"),
        ("en-tr", "50% of all", "%50"),
        ("en-de", "20 °C and 5 km", "5 km bei 20 °C"),
        ("en-fr", "1.5 GB", "1,5 Go"),
        ("en-ja", "3 miles", "3マイル"),
        ("en-es", "5 kg", "11 lb"),
        ("en-he", "10 km/h", "10 קמ״ש"),
        ("en-ru", "25 °C", "25 °С"),
        ("en-pl", "5 people", "5 osób"),
    ],
    "ending": [
        ("en-zh", "It is here.", "在这里。"),
        ("en-ar", "Where?", "أين؟"),
        ("en-el", "Where is it?", "Πού είναι;"),
        ("en-hi", "It is good.", "यह अच्छा है।"),
        ("en-th", "Where is it?", "อยู่ที่ไหน"),
        ("en-ja", "Is it open?", "開いていますか。"),
        ("en-es", "Where?", "¿Dónde?"),
        ("en-hy", "Where is it?", "Որտե՞ղ է այն։"),
        ("en-fr", "He said “no.”", "Il a dit « non »."),
        ("en-de", "Wait...", "Warte …"),
        ("en-ru", "<b>Name:</b>", "<b>Имя:</b>"),
        ("en-bn", "For example:", "উদাহরণস্বরূপঃ"),
        ("en-am", "It is good.", "ጥሩ ነው፡፡"),
        ("en-ur", "It is good.", "یہ اچھا ہے۔"),
        ("en-tr", "Really?!", "Gerçekten mi?"),
        ("en-he", "Go!", "לך."),
        ("en-ko", "Do you like it?", "좋아하나요"),
    ],
    "spaces": [
        ("en-de", "Name: ", "Name: "),
        ("en-zh", "Name: ", "名称："),
        ("en-fr", "a  b", "a b"),
        ("en-ja", "Sorry. ", "すみません。"),
        ("en-ru", "a\n", "а\n"),
        ("en-ar", " x", "  س"),
        ("en-es", "x", "y"),
        ("en-he", "", " "),
        ("en-hi", "\tx ", " क "),
        ("en-ko", "a\n\n", "가\n"),
        ("en-th", "a ", "ก\u00a0"),
        ("en-pl", " ", ""),
    ],
    "keys": [
        ("en-de", "&File", "&Datei"),
        ("en-ja", "&File", "ファイル(&F)"),
        ("en-zh", "_Open", "打开(_O)"),
        ("en-fr", "R&D", "Recherche"),
        ("en-es", "Tom & Jerry", "Tom y Jerry"),
        ("en-ru", "file_name", "имя файла"),
        ("en-de", "a &amp; b", "a und b"),
        ("en-fr", "see ~/config", "voir la configuration"),
        ("en-he", "_Help", "_עזרה"),
        ("en-tr", "E_xit", "Çı_kış"),
        ("en-ko", "http://a.b/?x=1&y=2", "주소"),
        ("en-pl", "use snake_case_names", "nazwy"),
        ("en-ar", "AT&T", "إيه تي أند تي"),
        ("en-hi", "~View", "~देखें"),
    ],
}


def found(name, case):
    """Return a rule's count and findings for a pair."""
    languages, source, target = case
    one, other = languages.split("-")
    check = find_check(name)((CODES[one], CODES[other]), None)
    (score,) = check.score(Pairs([source], [target], np.zeros(1)))
    return bool(score >= check.limit), check.explain(source, target)


@pytest.mark.parametrize("name", WRONG)
def test_a_rule_reports_what_is_wrong_and_names_it(name):
    assert len(WRONG[name]) >= 12
    missed = [case for case in WRONG[name] if not found(name, case)[0]]
    assert missed == []
    assert all(found(name, case)[1] for case in WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_rule_accepts_what_is_right(name):
    assert len(RIGHT[name]) >= 12
    alarms = [(case, found(name, case)[1]) for case in RIGHT[name] if found(name, case)[0]]
    assert alarms == []


def test_details_name_the_signs():
    assert found("placeholders", ("en-de", "{a} {b}", "{a} {c}"))[1] == (
        "{b} is missing, {c} is not in the source"
    )
    assert found("tags", ("en-de", "<b>x</b>", "x"))[1] == "<b> is missing, </b> is missing"
    assert found("units", ("en-de", "5 kg", "5 g"))[1] == "5 kg became 5 g"
    many = " ".join(f"{{{number}}}" for number in range(9))
    assert found("placeholders", ("en-de", many, ""))[1].endswith("{3} is missing, ...")


def test_placeholders_are_numbered_by_their_order():
    assert placeholders("%s %i %%") == {"%1$s": "%s", "%2$d": "%i"}
    assert list(placeholders("%2$s %1$d {}")) == ["%2$s", "%1$d", "{0}"]


def test_parts_of_texts_that_rules_compare():
    tags = inline_tags('<g id="1">a<br/></g> <file>')
    assert [str(tag) for tag in tags] == ["<g id=1>", "<br>", "</g>"]
    assert is_nested(tags)
    assert not is_nested(tags[:1])
    assert units_of_numbers("1.000 km, ٢٠ كغ") == {"1000": {"km"}, "20": {"kg"}}
    assert [count_keys(text, "&") for text in ("E&xit", "a && b", "&amp;")] == [1, 0, 0]


def test_a_rule_of_your_own_names_what_it_counts():
    class Stars(PairRule):
        name = "stars"
        signs = "*"

        def differences(self, source, target):
            return ["a star is missing"] * (source.count("*") - target.count("*"))

    check = Stars(("", ""), None)
    assert check.score(Pairs(["**", "a"], ["", "*"], np.zeros(2))).tolist() == [2, 0]
    assert check.explain("*", "") == "a star is missing"


def test_soft_differences_of_ends_count_half():
    check = find_check("ending")(("eng_Latn", "deu_Latn"), None)
    pairs = Pairs(["Go!", "Go.", "Go...", "1?"], ["Geh.", "Geh", "Geh.", "1"], np.zeros(4))
    assert check.score(pairs).tolist() == [0.5, 0.5, 0.5, 0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("a", ""), ("", ""), ("a.", "period"), ("a?!", "question mark"), ("»a…«", "ellipsis")],
)
def test_kinds_of_ends(text, kind):
    assert ending(text) == kind


STREAM = [
    ("Open", "Öffnen"),
    ("Close", "Schließen"),
    ("open.", "öffnen!"),  # but for case and punctuation the same
    ("Open", "Offen"),
    ("Open", "Offen"),
    ("Shut", "Schließen"),
    ("Exit", ""),
    ("Exit", "Beenden"),
]


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_second_translation_and_a_second_source_are_reported_once(tmp_path, on_disk):
    plan = CheckPlan.parse("translations,sources", "translations")
    checker = Checker(plan, ("eng_Latn", "deu_Latn"), tmp_path if on_disk else None)
    columns = []
    for start in range(0, len(STREAM), 3):
        part = STREAM[start : start + 3]
        pairs = Pairs([a for a, _ in part], [b for _, b in part], np.zeros(len(part)))
        columns.append(checker.measure(pairs))
    assert np.concatenate([one["translations"] for one in columns]).tolist() == [
        *(0, 0, 0, 1),
        *(0, 0, 0, 0),  # no translation of "Exit" before
    ]
    assert np.concatenate([one["sources"] for one in columns]).tolist() == [
        *(0, 0, 0, 0),
        *(0, 1, 0, 0),
    ]


def test_consistency_goes_on_between_two_calls_and_passes_over_empty_texts():
    for kind, pairs in (
        (OneTranslation, [("a", "b"), ("a", "c")]),
        (OneSource, [("a", "b"), ("c", "b")]),
    ):
        check = kind(("", ""), None)
        scores = [check.score(Pairs([a], [b], np.zeros(1))).tolist() for a, b in pairs]
        assert scores == [[0], [1]]
        assert check.score(Pairs(["", "a"], ["x", "?"], np.zeros(2))).tolist() == [0, 0]


def test_rules_measure_and_reject_as_other_checks_do():
    plan = CheckPlan.parse("all", "placeholders,ending=0.5")
    assert "glossary" not in plan.columns
    checker = Checker(CheckPlan.parse("tags", "placeholders"), ("eng_Latn", "deu_Latn"), None)
    pairs = Pairs(["{0} <b>", "x"], ["<b>", "<i>"], np.zeros(2))
    columns = checker.measure(pairs)
    assert {name: marks.tolist() for name, marks in checker.rejected(columns).items()} == {
        "placeholders differ": [True, False]
    }
    assert checker.findings(columns)["tags"].tolist() == [False, True]
    assert checker.explain("tags", "x", "<i>") == "tags differ: <i> is not in the source"
