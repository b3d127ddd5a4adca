"""``interlingua.documents`` and ``interlingua documents``: two folders to a translation memory."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

import interlingua
from interlingua.alignment.document_files import find_named_languages
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration.calibration import save_calibration
from tests.alignment.invented_documents import contents, markdown, write_sides
from tests.mining.curves import calibration
from tests.mining.invented import embed

COMMAND = "documents tests.mining.invented:embed"
FIELDS = {
    "probability",
    "source_document",
    "target_document",
    "source_position",
    "target_position",
    "kind",
}


@pytest.fixture
def folder(tmp_path):
    """Six documents in both languages, one more in each, and a file of another kind."""
    write_sides(tmp_path, contents(6))
    for language, seed in (("de", 5), ("en", 6)):
        text = markdown(contents(1, seed=seed)[0], language)
        (tmp_path / language / f"alone-{language}-only.md").write_text(text, encoding="utf-8")
    (tmp_path / "de" / "picture.png").write_bytes(b"\x89PNG")
    return tmp_path


def test_function_and_command_line_give_equal_memories(done, folder):
    output = folder / "memory.jsonl"
    paths = [str(folder / language) for language in ("de", "en")]
    told = done(COMMAND, *paths, f"--backend function -o {output}").err
    found = interlingua.documents("tests.mining.invented:embed", *paths, backend="function")
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(found) >= 40
    assert [row["source"] for row in rows] == [pair.source for pair in found]
    assert set(rows[0]) >= FIELDS
    assert found.records()[0].keys() >= FIELDS
    assert found.report.documents == (7, 7)
    assert {one.pairing.by for one in found.report.paired} == {"names"}
    assert len(found.report.paired) == 6
    # Skipped documents, and those without a partner, are reported.
    for name in ("picture.png", "alone-de-only.md", "alone-en-only.md"):
        assert name in told
    assert not output.with_name("memory.jsonl.work").exists()
    # In memory, with an encoder.
    again = interlingua.documents(embed, *paths)
    assert [pair[:2] for pair in again] == [pair[:2] for pair in found]
    assert again.to_pandas().shape[0] == len(found)


@pytest.mark.parametrize("name", ["m.tmx", "m.tsv", "m.csv", "m.xlsx", "m.jsonl", "m.de-en"])
def test_every_format_holds_the_links(folder, name):
    path = folder / name
    found = interlingua.documents(embed, folder / "de", folder / "en", output=path)
    assert found == []
    pairs = list(read_pairs(path, source_language="de", target_language="en"))
    assert len(pairs) == found.report.written == found.report.links
    if name != "m.de-en":
        assert pairs[0].score is not None
        assert set(pairs[0].fields) >= FIELDS
        assert pairs[0].fields["kind"] == "heading"


def test_headings_are_linked_with_headings(folder):
    found = interlingua.documents(embed, folder / "de", folder / "en")
    headings = [pair for pair in found if pair.fields["kind"] == "heading"]
    assert len(headings) == 6
    assert {pair.fields["source_position"] for pair in headings} == {"1"}
    assert {pair.fields["target_position"] for pair in headings} == {"1"}


def test_one_folder_with_languages_in_names(tmp_path):
    for number, document in enumerate(contents(5)):
        for language in ("de", "en"):
            path = tmp_path / "all" / f"page{number}.{language}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(markdown(document, language), encoding="utf-8")
    found = interlingua.documents(embed, tmp_path / "all")
    assert found.report.languages == ("deu_Latn", "eng_Latn")
    assert [one.pairing.by for one in found.report.paired] == ["names"] * 5
    # The direction is that of the language that is named.
    turned = interlingua.documents(embed, tmp_path / "all", source_language="en")
    assert turned.report.languages == ("eng_Latn", "deu_Latn")
    text = markdown(contents(1, seed=9)[0], "fr")
    (tmp_path / "all" / "page9.fr.md").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"fra_Latn.*--source-language"):
        interlingua.documents(embed, tmp_path / "all")
    three = interlingua.documents(
        embed, tmp_path / "all", source_language="de", target_language="en"
    )
    assert len(three.report.paired) == 5
    assert [one.path for one in three.report.left_out] == [str(tmp_path / "all" / "page9.fr.md")]


def test_documents_are_paired_by_their_texts(tmp_path, folder):
    documents = contents(12, sentences=10)
    for language, order in (("de", range(12)), ("en", reversed(range(12)))):
        (tmp_path / "x" / language).mkdir(parents=True)
        for place, number in enumerate(order):
            path = tmp_path / "x" / language / f"{language}{place}x.md"
            path.write_text(markdown(documents[number], language), encoding="utf-8")
    paths = [tmp_path / "x" / language for language in ("de", "en")]
    found = interlingua.documents(embed, *paths, match="texts")
    pairs = {tuple(path.rpartition("/")[2] for path in one.paths) for one in found.report.paired}
    assert pairs == {(f"de{place}x.md", f"en{11 - place}x.md") for place in range(12)}
    assert interlingua.documents(embed, *paths, match="names") == []


def test_pairs_are_written_and_read_again(folder):
    paths = [folder / language for language in ("de", "en")]
    first = interlingua.documents(
        embed, *paths, output=folder / "m.tsv", paired=folder / "pairs.tsv"
    )
    rows = (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == len(first.report.paired) == 6
    # A wrong pair is kept and reported; names below the folder suffice.
    wrong = "0.md\t1.md\n# a comment\n2.md\t2.md\n"
    (folder / "some.tsv").write_text(wrong, encoding="utf-8")
    found = interlingua.documents(embed, *paths, pairs=folder / "some.tsv")
    assert [one.pairing.by for one in found.report.paired] == ["given", "given"]
    doubtful = {
        (source.rpartition("/")[2], target.rpartition("/")[2])
        for source, target, _ in found.report.doubtful
    }
    assert doubtful == {("0.md", "1.md")}
    for text, told in (
        ("9.md\t1.md\n", r"some\.tsv:1: 9\.md"),
        ("0.md\n", "some"),
        ("", "some"),
        ("0.md\t1.md\n0.md\t2.md\n", r"some\.tsv:2: 0\.md"),
    ):
        (folder / "some.tsv").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=told):
            interlingua.documents(embed, *paths, pairs=folder / "some.tsv")


def test_the_page_shows_pairs_links_and_what_is_left(folder):
    interlingua.documents(
        embed, folder / "de", folder / "en", output=folder / "m.tmx", report=folder / "m.html"
    )
    page = (folder / "m.html").read_text(encoding="utf-8")
    for text in ("0.md", "alone-de-only.md", "picture.png", "6 pairs", "100 %"):
        assert text in page, text
    assert not re.search(r'(src|href)="http', page)


def test_a_least_probability_leaves_links_out(folder):
    paths = [folder / language for language in ("de", "en")]
    every = interlingua.documents(embed, *paths)
    likely = interlingua.documents(embed, *paths, probability=0.999999)
    assert len(likely) < len(every)
    assert likely.report.links == len(every)


def test_two_files_are_a_pair(folder):
    files = [folder / language / "3.md" for language in ("de", "en")]
    found = interlingua.documents(embed, *files)
    assert [one.pairing.by for one in found.report.paired] == ["given"]
    assert len(found) >= 7
    several = interlingua.documents(embed, [files[0], folder / "de" / "4.md"], [files[1]])
    assert len(several.report.paired) == 1


def test_a_run_resumes_and_embeds_nothing_again(folder):
    asked = []

    def counted(texts):
        asked.append(len(texts))
        return embed(texts)

    options = {"output": folder / "m.jsonl", "work": folder / "work"}
    paths = [folder / language for language in ("de", "en")]
    interlingua.documents(counted, *paths, **options)
    first = (folder / "m.jsonl").read_bytes()
    assert asked
    asked.clear()
    (folder / "m.jsonl").unlink()
    interlingua.documents(counted, *paths, **options)
    assert asked == []
    assert (folder / "m.jsonl").read_bytes() == first
    # Another way to pair is another step; the vectors of sentences stay.
    interlingua.documents(counted, *paths, match="names", **options)
    assert sum(asked) < 20
    (folder / "de" / "0.md").write_text("Anders. Neu.", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"0\.md has changed.*--work"):
        interlingua.documents(counted, *paths, **options)


def test_documents_that_cannot_be_read_cost_themselves_alone(folder):
    (folder / "de" / "broken.md").write_bytes(b"\xff\xfe\x00\x00\x00\xd8")
    (folder / "de" / "empty.md").write_bytes(b"")
    (folder / "en" / "blank.md").write_text("\n \n", encoding="utf-8")
    found = interlingua.documents(embed, folder / "de", folder / "en")
    left = {one.path.rpartition("/")[2] for one in found.report.left_out}
    assert left == {"broken.md", "empty.md", "blank.md", "picture.png"}
    assert all(one.reason for one in found.report.left_out)
    assert len(found.report.paired) == 6
    (folder / "none").mkdir()
    (folder / "none" / "broken.md").write_bytes(b"\xff\xfe\x00\x00\x00\xd8")
    with pytest.raises(DataError, match=r"broken\.md"):
        interlingua.documents(embed, folder / "none", folder / "en")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"match": "name"}, "match"),
        ({"match": "texts", "pairs": "{folder}/p.tsv"}, "--match"),
        ({"report": "{folder}/r.html"}, "--output"),
        ({"output": "{folder}/m.docx"}, "docx"),
        ({"output": "{folder}/de/0.md.tsv", "paired": "{folder}/de/0.md.tsv"}, "two outputs"),
        ({"source_language": "xx-none"}, "xx-none"),
        ({"source_language": "en", "target_language": "en"}, "--target-language"),
        ({"probability": 2.0}, "probability"),
        ({"calibration": "{folder}/none.json"}, "none.json"),
    ],
)
def test_wrong_options_are_one_line(folder, options, told):
    (folder / "p.tsv").write_text("0.md\t0.md\n", encoding="utf-8")
    given = {
        name: value.format(folder=folder) if isinstance(value, str) else value
        for name, value in options.items()
    }
    with pytest.raises((ConfigError, DataError), match=told) as error:
        interlingua.documents(embed, folder / "de", folder / "en", **given)
    assert "\n" not in str(error.value)


def test_wrong_inputs_are_one_line(refused, folder):
    assert "xx: " in refused("documents", folder / "de", folder / "xx", "-o", "m.tmx").err
    (folder / "none").mkdir()
    assert "none" in refused("documents", folder / "none", folder / "en", "-o", "m.tmx").err
    told = refused("documents", folder / "de", folder / "de", "-o", "m.tmx").err
    assert "SOURCE and TARGET" in told
    refused("documents", folder / "de", folder / "en")


def replace_texts(folder, text):
    """Write a text to each file of a folder, and return the former texts."""
    texts = {path: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    for path in texts:
        path.write_text(text, encoding="utf-8")
    return texts


@pytest.mark.parametrize("options", ["", "--work {folder}/new"], ids=["default", "work"])
def test_an_empty_side_leaves_no_work_folder_and_can_be_corrected(folder, run, options):
    command = (COMMAND, folder / "de", folder / "en", f"--backend function -o {folder}/m.tmx")
    command += (options.format(folder=folder),)
    before = set(folder.iterdir())
    texts = replace_texts(folder / "en", "\n")
    result = run(*command)
    assert (result.code, "no target document" in result.err) == (2, True), result.err
    assert set(folder.iterdir()) == before
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    assert run(*command).code == 0


def test_a_language_without_documents_leaves_no_work_folder(folder, run):
    before = set(folder.iterdir())
    result = run(
        f"{COMMAND} {folder} --backend function -o {folder}/m.tmx",
        "--source-language de --target-language fr",
    )
    assert (result.code, "fra_Latn" in result.err) == (2, True), result.err
    assert set(folder.iterdir()) == before


def test_an_empty_side_leaves_a_folder_that_existed_and_can_be_corrected(folder, run):
    (folder / "own").mkdir()
    (folder / "own" / "notes.txt").write_text("mine", encoding="utf-8")
    command = f"{COMMAND} {folder}/de {folder}/en --backend function -o {folder}/m.tmx"
    command += f" --work {folder}/own"
    texts = replace_texts(folder / "en", "\n")
    assert run(command).code == 2
    assert (folder / "own" / "notes.txt").read_text(encoding="utf-8") == "mine"
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    result = run(command)
    assert result.code == 0, result.err


def test_an_empty_side_leaves_the_finished_work_of_an_earlier_run(folder, run):
    command = f"{COMMAND} {folder} --backend function -o {folder}/m.tmx --work {folder}/work"
    assert run(command, "--source-language de --target-language en").code == 0
    files = [path for path in (folder / "work").rglob("*") if path.parent != folder / "work"]
    kept = {path: path.read_bytes() for path in files if path.is_file()}
    assert run(command, "--source-language de --target-language fr").code == 2
    assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("guide.de.md", ["deu_Latn"]),
        ("guide_pt-BR.md", ["por_Latn"]),
        ("de/guide.md", ["deu_Latn"]),
        ("fr/de-guide.md", ["deu_Latn", "fra_Latn"]),
        ("manual/german/a.txt", ["deu_Latn"]),
        ("a.txt", []),
    ],
)
def test_languages_in_names(name, codes):
    assert [str(code)[:8] for code in find_named_languages(name)] == codes


def test_a_calibration_gives_probabilities(folder):
    path = folder / "scores.json"
    known = calibration(
        source_language="deu_Latn",
        target_language="eng_Latn",
        model="tests.mining.invented:embed",
        scoring="score ratio k=4 window=8192",
    )
    save_calibration(known, path)
    paths = [folder / language for language in ("de", "en")]
    found = interlingua.documents(embed, *paths, calibration=path)
    probabilities = [pair.fields["probability"] for pair in found]
    assert min(probabilities) >= 0
    # Translations of invented words have margins far above 1.2.
    assert sum(one > 0.9 for one in probabilities) > 0.9 * len(found)
    save_calibration(calibration(**{**vars_of(known), "model": "another"}), path)
    with pytest.raises(ConfigError, match="another"):
        interlingua.documents(embed, *paths, calibration=path)


def vars_of(known):
    return {field.name: getattr(known, field.name) for field in dataclasses.fields(known)}


def test_the_language_that_a_document_declares_comes_first(tmp_path):
    for name, language in (("x", "fr"), ("y", "es")):
        (tmp_path / name).mkdir()
        text = f'<html lang="{language}"><body><h1>a1 a2</h1><p>a3 a4 a5.</p><p>a6 a7</p></body>'
        (tmp_path / name / "page.html").write_text(text, encoding="utf-8")
    found = interlingua.documents(embed, tmp_path / "x", tmp_path / "y")
    assert found.report.languages == ("fra_Latn", "spa_Latn")
    assert found[0][:2] == ("a1 a2", "a1 a2")
    # A specified language is believed.
    given = interlingua.documents(
        embed, tmp_path / "x", tmp_path / "y", source_language="it", target_language="pt"
    )
    assert given.report.languages == ("ita_Latn", "por_Latn")
    assert len(given) == len(found)


def test_texts_tell_the_language(tmp_path):
    texts = {
        "x": "Это первая страница руководства. Здесь ы и э, и ещё несколько слов.",
        "y": "これは手引きの最初のページです。ここにいくつかの文があります。",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text, encoding="utf-8")
    found = interlingua.documents(embed, tmp_path / "x", tmp_path / "y")
    assert found.report.languages == ("rus_Cyrl", "jpn_Jpan")
