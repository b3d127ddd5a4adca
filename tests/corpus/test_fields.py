"""Metadata of pairs is written by every format that has a place for it."""

from __future__ import annotations

import json
import re

import pytest

from interlingua.config.languages import resolve_code
from interlingua.corpus.formats.bitext import pair_fields, read_pairs, write_pairs

from .conftest import write

CATALOGUE = """\
msgid ""
msgstr "Language: de\\n"

msgid "Open the file"
msgstr "Datei öffnen"

# by hand
#. extracted
#: a.c:12
#, c-format
#| msgid "Shut %s"
msgctxt "menu"
msgid "Close %s"
msgstr "%s schließen"

msgid "One file"
msgid_plural "%d files"
msgstr[0] "Eine Datei"
msgstr[1] "%d Dateien"
"""
OF_CATALOGUE = [
    {},
    {
        "context": "menu", "comment": "by hand", "extracted": "extracted", "reference": "a.c:12",
        "flags": "c-format", "previous": 'msgid "Shut %s"',
    },
    {"plural": "%d files", "form": "0"},
    {"plural": "%d files", "form": "1"},
]  # fmt: skip
OBJECTS = [
    {"source": "One", "target": "Eins"},
    {"source": "Two", "target": "Zwei", "score": 0.5, "id": 7, "url": "u"},
    {"source": "Three", "target": "Drei", "id": 8, "tags": ["a", 1]},
]
OF_OBJECTS = [{}, {"id": "7", "url": "u"}, {"id": "8", "tags": '["a", 1]'}]
UNITS = """\
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>One</seg></tuv><tuv xml:lang="de"><seg>Eins</seg></tuv></tu>
<tu tuid="7" creationid="ann"><note>checked</note><prop type="domain">law</prop>
<prop type="domain">tax</prop>
<tuv xml:lang="en"><seg>Two</seg></tuv><tuv xml:lang="de"><seg>Zwei</seg></tuv></tu>
</body></tmx>
"""
OF_UNITS = [{}, {"tuid": "7", "creationid": "ann", "note": "checked", "domain": '["law", "tax"]'}]


def inputs(tmp_path):
    rows = "".join(f"{json.dumps(item)}\n" for item in OBJECTS)
    return {
        "po": (write(tmp_path / "de.po", CATALOGUE), OF_CATALOGUE),
        "jsonl": (write(tmp_path / "x.en-de.jsonl", rows), OF_OBJECTS),
        "tmx": (write(tmp_path / "x.tmx", UNITS), OF_UNITS),
    }


def shown(pair):
    found = {name: value for name, value in pair_fields(pair).items() if value != ""}
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
    }


@pytest.mark.parametrize("name", ["x.csv", "x.xlsx", "x.en-de.tsv", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize("kind", ["po", "jsonl", "tmx"])
def test_columns_that_the_first_pair_lacks_go_out(tmp_path, kind, name):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    if name.endswith("parquet"):
        pytest.importorskip("datasets")
    path, expected = inputs(tmp_path)[kind]
    pairs = list(read_pairs(path))
    assert write_pairs(pairs, tmp_path / "out" / name) == len(pairs)
    back = list(read_pairs(tmp_path / "out" / name))
    assert [pair[:2] for pair in back] == [pair[:2] for pair in pairs]
    if kind != "jsonl" and name.endswith("tsv"):  # a plain file of texts
        expected = [{}] * len(pairs)
    assert [shown(pair) for pair in back] == expected
    assert [pair.score for pair in back] == [pair.score for pair in pairs]


def test_every_column_of_a_catalogue_is_there_from_the_start(tmp_path):
    path = write(tmp_path / "de.po", 'msgid "One"\nmsgstr "Eins"\n')
    write_pairs(read_pairs(path), tmp_path / "x.csv")
    header = (tmp_path / "x.csv").read_text(encoding="utf-8-sig").splitlines()[0].split(",")
    assert {"context", "plural", "form", "flags", "comment", "reference"} <= set(header)


def test_a_score_that_the_first_row_of_a_table_lacks_goes_out(tmp_path):
    path = write(tmp_path / "x.csv", "score,en,de\n,One,Eins\n0.5,Two,Zwei\n")
    for name in ("y.csv", "y.jsonl", "y.en-de.tsv"):
        write_pairs(read_pairs(path), tmp_path / name)
        (first, second) = read_pairs(tmp_path / name)
        assert (first.score or 0, second.score) == (0, 0.5)


EMPTY = {
    "x.tmx": 'srclang="en".*<prop type="targetlang">de-CH</prop>',
    "x.po": '"Language: de_CH',
    "x.csv": "source,target,source_language,target_language",
}


@pytest.mark.parametrize(
    "name",
    ["x.tmx", "x.po", "x.mo", "x.csv", "x.xlsx", "x.tsv", "x.jsonl", "x.zip", "x", "x.parquet"],
)
def test_a_file_without_pairs_has_the_known_languages(tmp_path, name):
    """Check the formats that store languages outside of pairs."""
    for package in {"x.xlsx": ["openpyxl"], "x.parquet": ["pyarrow", "datasets"]}.get(name, []):
        pytest.importorskip(package)
    languages = (resolve_code("en"), resolve_code("de-CH"))
    assert write_pairs([], tmp_path / name, languages=languages) == 0
    if name in EMPTY:
        assert re.search(EMPTY[name], (tmp_path / name).read_text(encoding="utf-8-sig"))
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == (["x.de", "x.en"] if name == "x" else [name])
    if name == "x.parquet":
        import pyarrow.parquet as parquet

        schema = parquet.read_schema(tmp_path / name)
        assert [field.name for field in schema.field("translation").type] == ["en", "de"]
    if name == "x.zip":
        import zipfile

        with zipfile.ZipFile(tmp_path / name) as archive:
            assert sorted(archive.namelist()) == ["x.de", "x.en"]
    assert list(read_pairs(tmp_path / name, source_language="en", target_language="de")) == []
