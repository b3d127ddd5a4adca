"""The check ``glossary``: terms in many languages, with inflections, and the files they come in."""

from __future__ import annotations

import numpy as np
import openpyxl
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining.checks import Checker, CheckPlan, Pairs
from interlingua.mining.rules.glossary import GlossaryTerms
from interlingua.mining.rules.glossary_file import TermPair, read_glossary
from interlingua.verbs.score import score
from tests.mining.invented import write_lines
from tests.mining.rules.test_rules import CODES
from tests.mining.words import embed

# Languages, term, translation, source, target.
WRONG = [
    ("en-de", "file", "Datei", "Open the file.", "Öffnen Sie den Ordner."),
    ("en-de", "files", "Dateien", "Copy all files.", "Alles kopieren."),
    ("en-fr", "network", "réseau", "The network is down.", "Le net est en panne."),
    ("en-es", "policy", "política", "Our policies changed.", "Nuestras normas cambiaron."),
    ("en-ru", "server", "сервер", "Restart the server.", "Перезапустите машину."),
    ("en-ja", "folder", "フォルダー", "Delete the folder.", "ディレクトリを削除します。"),
    ("ja-en", "設定", "settings", "設定を変更します。", "Change the options."),
    ("zh-en", "文件", "file", "打开文件。", "Open the document."),
    ("en-ar", "printer", "طابعة", "The printer is off.", "الجهاز مغلق."),
    ("en-hi", "page", "पृष्ठ", "Print the page.", "पन्ना छापें।"),
    ("de-en", "Datei", "file", "Alle Dateien löschen", "Delete everything"),
    ("ru-en", "книга", "book", "Он читает книгу.", "He is reading."),
    ("en-th", "window", "หน้าต่าง", "Close the window", "ปิดจอ"),
    ("en-ko", "screen", "화면", "Clear the screen.", "모니터를 지웁니다."),
    ("en-de", "hard disk", "Festplatte", "The hard disk is full.", "Die Scheibe ist voll."),
    ("en-he", "user", "משתמש", "The user is new.", "האדם חדש."),
]
RIGHT = [
    ("en-de", "file", "Datei", "Open the files.", "Öffnen Sie die Dateien."),
    ("en-de", "server", "Server", "Start the server.", "Den Mailserver starten."),
    ("en-de", "file", "Datei", "The profile is new.", "Das Profil ist neu."),
    ("en-fr", "network", "réseau", "Two NETWORKS", "Deux RÉSEAUX"),
    ("en-es", "policy", "política", "Our policies changed.", "Nuestras políticas cambiaron."),
    ("en-ru", "server", "сервер", "Files of the server", "Файлы сервера"),
    ("en-ru", "book", "книга", "He reads a book.", "Он читает книгу."),
    ("en-ja", "folder", "フォルダー", "Delete the folder.", "フォルダーを削除します。"),
    ("zh-en", "文件", "file", "打开文件夹。", "Open the files."),
    ("en-ar", "network", "الشبكة", "The network", "بالشبكة"),
    ("en-ar", "united", "متحدة", "united", "مُتّحدة"),
    ("en-hi", "page", "पृष्ठ", "Print the pages.", "पृष्ठों को छापें।"),
    ("en-th", "window", "หน้าต่าง", "Close the window", "ปิดหน้าต่างนี้"),
    ("en-ko", "screen", "화면", "Clear the screen.", "화면을 지웁니다."),
    ("en-tr", "house", "ev", "in the houses", "evlerde"),
    ("en-fi", "language", "kieli", "in many languages", "monilla kielillä"),
    ("en-pl", "window", "okno", "Open windows", "Otwórz okna"),
    ("en-he", "user", "משתמש", "The users", "המשתמשים"),
    ("en-de", "Chile", "Chile", "The children play.", "Die Kinder spielen."),
    ("en-el", "computer", "υπολογιστής", "of the computer", "του υπολογιστή"),
]


def differences(folder, case):
    languages, term, translation, source, target = case
    one, other = languages.split("-")
    check = GlossaryTerms((CODES[one], CODES[other]), None)
    check.read(write_lines(folder / "g.tsv", [f"{term}\t{translation}"]))
    return check.differences(source, target)


@pytest.mark.parametrize("case", WRONG, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_term_without_its_translation_is_reported(tmp_path, case):
    assert differences(tmp_path, case) == [f"{case[1]} → {case[2]} is missing"]


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: f"{case[0]} {case[3]}")
def test_a_term_with_a_form_of_its_translation_is_not(tmp_path, case):
    assert differences(tmp_path, case) == []


def test_the_longest_term_counts_and_any_of_its_translations(tmp_path):
    check = GlossaryTerms(("eng_Latn", "deu_Latn"), None)
    rows = ["disk\tScheibe", "hard disk\tFestplatte | HDD", "hard disk\tPlatte", "hard\thart"]
    check.read(write_lines(tmp_path / "g.tsv", rows))
    assert check.differences("The hard disk is full.", "Die HDD ist voll.") == []
    assert check.differences("A hard disk.", "Hart.") == [
        "hard disk → Festplatte | HDD | Platte is missing"
    ]
    assert check.differences("A disk, a disk.", "x") == ["disk → Scheibe is missing"]


TBX3 = """<?xml version="1.0"?>
<tbx style="dca" type="TBX-Basic" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2">
<text><body>
<conceptEntry id="1">
 <langSec xml:lang="en"><termSec><term>file</term></termSec></langSec>
 <langSec xml:lang="de">
  <termSec><term>Datei</term>
   <termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></termSec>
  <termSec><term>File</term>
   <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termSec>
 </langSec>
</conceptEntry>
<conceptEntry id="2"><langSec xml:lang="fr"><termSec><term>clé</term></termSec></langSec>
</conceptEntry>
</body></text></tbx>
"""
TBX2 = """<?xml version="1.0"?>
<martif type="TBX" xml:lang="en"><text><body>
<termEntry id="1"><descrip type="subjectField">x</descrip>
 <langSet xml:lang="en-US"><ntig><termGrp><term>file</term></termGrp></ntig></langSet>
 <langSet xml:lang="de-DE"><tig><term>Datei</term></tig></langSet>
</termEntry></body></text></martif>
"""


@pytest.mark.parametrize("content", [TBX3, TBX2], ids=["3", "2"])
def test_terms_of_tbx(tmp_path, content):
    path = tmp_path / "g.tbx"
    path.write_text(content, encoding="utf-8")
    assert read_glossary(path, ("eng_Latn", "deu_Latn")) == [TermPair("file", ("Datei",))]
    assert read_glossary(path, ("deu_Latn", "eng_Latn")) == [TermPair("Datei", ("file",))]
    with pytest.raises(DataError, match=r"g\.tbx: .*rus_Cyrl"):
        read_glossary(path, ("eng_Latn", "rus_Cyrl"))


def test_terms_of_tables(tmp_path):
    expected = [TermPair("file", ("Datei",)), TermPair("key", ("Taste",))]
    languages = ("eng_Latn", "deu_Latn")
    header = write_lines(tmp_path / "a.csv", ["de,en", "Datei,file", "Taste,key"])
    plain = write_lines(tmp_path / "b.tsv", ["file\tDatei", "key\tTaste"])
    book = openpyxl.Workbook()
    for row in (("source", "target"), ("file", "Datei"), ("key", "Taste")):
        book.active.append(row)
    book.save(tmp_path / "c.xlsx")
    for path in (header, plain, tmp_path / "c.xlsx"):
        assert read_glossary(path, languages) == expected
    assert read_glossary(plain, ("", "")) == expected


@pytest.mark.parametrize("content", ["<a/>", "<tbx><conceptEntry>", ""])
def test_a_broken_glossary_is_an_error_of_one_line(tmp_path, content):
    path = tmp_path / "g.tbx"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"g\.tbx"):
        read_glossary(path, ("eng_Latn", "deu_Latn"))


def test_a_glossary_is_measured_and_rejects_if_it_is_asked_to(tmp_path):
    path = write_lines(tmp_path / "g.csv", ["source,target", "file,Datei"])
    plan = CheckPlan.parse("", "glossary", path)
    assert plan.columns == ("glossary",)
    checker = Checker(plan, ("eng_Latn", "deu_Latn"), None)
    pairs = Pairs(["a file", "a file"], ["eine Datei", "ein Ordner"], np.zeros(2))
    assert checker.measure(pairs)["glossary"].tolist() == [0, 1]
    with pytest.raises(ConfigError, match="--glossary"):
        CheckPlan.parse("glossary", "")
    with pytest.raises(ConfigError, match="--glossary"):
        CheckPlan.parse("", "glossary=2")
    languages = {"source_language": "en", "target_language": "de"}
    both = [("a file", "eine Datei"), ("a file", "ein Ordner")]
    kept = list(score(embed, both, glossary=path, drop="glossary", **languages))
    assert [(one.target, one.columns["glossary"]) for one in kept] == [("eine Datei", 0)]
    with pytest.raises(DataError, match=r"none\.csv"):
        score(embed, both, glossary=tmp_path / "none.csv", **languages)
