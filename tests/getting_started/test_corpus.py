import pytest

from interlingua.batches.token_store import TokenStore
from interlingua.errors import DataError
from interlingua.getting_started.catalogues import CatalogueSource
from interlingua.getting_started.corpus import (
    MIN_SENTENCES,
    collect_bitexts,
    quickstart_corpus_config,
    split_kinds,
)
from interlingua.preparation.pipeline import prepare_corpus
from interlingua.runtime.progress import SILENT
from tests.getting_started.conftest import SUBJECTS, translate, write_catalogue
from tests.progress_records import Recorded


@pytest.fixture
def sources(catalogues, tmp_path):
    """The invented sentences; and a list of names, in one language with sentences and one
    without."""
    names = {
        "el": [translate(f"land{number}", "el") for number in range(500)],
        "de_AT": [translate(f"land{number}", "de") for number in range(500)],
        "hi": [f"देश {number}" for number in range(500)],
    }
    for locale, translated in names.items():
        entries = {f"Republic of Land {number}": name for number, name in enumerate(translated)}
        write_catalogue(tmp_path / "names" / locale / "LC_MESSAGES" / "iso.mo", entries)
    return [
        CatalogueSource(name="app", folder=catalogues, version="1.0", license="MIT"),
        CatalogueSource(
            name="iso names", folder=tmp_path / "names", only_names=True, license="LGPL-2.1-only"
        ),
    ]


def test_collect_keeps_languages_with_sentences_and_few_names(sources, tmp_path):
    told = Recorded()
    bitexts = collect_bitexts(sources, tmp_path / "out", progress=told)
    assert told.states == [("app", 1, 2), ("iso names", 2, 2)]
    assert set(bitexts["app"]) == {"rus_Cyrl", "ell_Grek", "deu_Latn"}
    assert set(bitexts["iso names"]) == {"ell_Grek", "deu_Latn"}  # Hindi has names only
    lines = bitexts["app"]["ell_Grek"].read_text().splitlines()
    greek, english = lines[0].split("\t")
    assert english.startswith(tuple(SUBJECTS))
    assert greek == translate(english, "el")
    names = {
        code: bitexts["iso names"][code].read_text().splitlines()
        for code in ("ell_Grek", "deu_Latn")
    }
    assert (
        len(names["ell_Grek"]) == len(lines) - 3
    )  # as many as there are sentences: all but three labels
    assert [line.split("\t")[1] for line in names["ell_Grek"]] == [
        line.split("\t")[1] for line in names["deu_Latn"]
    ]


def test_too_few_sentences_are_an_error_that_names_the_sources(sources, tmp_path):
    with pytest.raises(DataError, match=f"{MIN_SENTENCES} translated .*iso names"):
        collect_bitexts(sources[1:], tmp_path / "out", progress=SILENT)


def test_prepared_corpus_holds_out_no_names_and_strips_placeholders(sources, tmp_path):
    filler = {
        f"Delete {n} of %(count)s items": f"Удалить {translate(str(n), 'ru')} из %(count)s"
        for n in range(200)
    }
    write_catalogue(tmp_path / "more" / "ru.mo", filler)
    sources.append(CatalogueSource(name="more", folder=tmp_path / "more"))
    bitexts = collect_bitexts(sources, tmp_path / "out", progress=SILENT)
    manifest = prepare_corpus(
        quickstart_corpus_config(
            bitexts, sources, tmp_path / "corpus", vocabulary_size=500, max_tokens=50
        ),
    )
    records = {record.name: record for record in manifest.sources}
    assert set(records) == {"app 1.0", "iso names", "more"}
    assert records["iso names"].heldout == 0
    assert records["iso names"].license == "LGPL-2.1-only"
    assert records["app 1.0"].heldout > 50
    assert TokenStore.open(tmp_path / "corpus" / "train").language_pairs == (
        ("deu_Latn", "eng_Latn"),
        ("ell_Grek", "eng_Latn"),
        ("rus_Cyrl", "eng_Latn"),
    )
    held_out = "".join(path.read_text() for path in (tmp_path / "corpus" / "heldout").iterdir())
    assert "Удалить" in held_out
    assert "%" not in held_out
    assert "Republic" not in held_out


def test_split_kinds_parts_sentences_from_names(tmp_path):
    heldout = tmp_path / "heldout"
    heldout.mkdir()
    (heldout / "deu-eng.tsv").write_text(
        "Seite nicht da\tPage not found\nAlle Seiten\tAll pages here\nJa\tYes\n"
    )
    (heldout / "jpn-eng.tsv").write_text("保存\tSave\n削除\tDelete\n")
    folders = split_kinds(heldout, tmp_path / "out")
    assert {
        kind: sorted(file.name for file in folder.iterdir()) for kind, folder in folders.items()
    } == {
        "sentences": ["deu-eng.tsv"],
        "names": ["jpn-eng.tsv"],  # a single German name is no retrieval
    }
    assert (folders["names"] / "jpn-eng.tsv").read_text() == "保存\tSave\n削除\tDelete\n"
