from __future__ import annotations

from interlingua.corpus.inspection.files import LookSettings, look_into
from interlingua.corpus.inspection.rows import look_rows
from tests.corpus.inspection.made import german_english, write_rows


def test_rows_of_a_bitext(tmp_path):
    path = write_rows(tmp_path / "x.de-en.tsv", german_english(150))
    rows = dict(look_rows(look_into(str(path), LookSettings())))
    assert rows["format"] == "pairs, tsv, UTF-8"
    assert rows["pairs"] == "150"
    assert rows["source"] == "deu_Latn (German); Latn 100%"
    assert rows["sorted"] == "no"


def test_rows_of_a_text_with_an_order(tmp_path):
    path = tmp_path / "x.de.txt"
    texts = sorted(source for source, _ in german_english(150))
    path.write_text("\n".join(texts), encoding="utf-8")
    rows = dict(look_rows(look_into(str(path), LookSettings())))
    assert rows["texts"] == "150"
    assert "alphabet" in rows["sorted"]


def test_several_languages_are_counted(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [
        f'{{"source": "a", "target": "b", "source_language": "{code}", "target_language": "en"}}\n'
        for code in ("de", "de", "fr")
    ]
    path.write_text("".join(lines), encoding="utf-8")
    rows = dict(look_rows(look_into(str(path), LookSettings())))
    assert rows["languages"] == "deu_Latn-eng_Latn 2, fra_Latn-eng_Latn 1"
