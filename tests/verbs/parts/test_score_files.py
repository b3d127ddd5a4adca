"""``score`` on folders and patterns: one output each, one for all, and files that can't be read."""

from __future__ import annotations

import csv

import pytest

import interlingua
from interlingua.config.languages import written_tag
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.localization.bitext_folders import several_bitexts
from interlingua.errors import ConfigError, DataError
from interlingua.storage.journal import Journal
from tests.mining.words import embed
from tests.tiny import tiny_encoder

PO = 'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "en1 en2"\nmsgstr "de1 de2"\n'
XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">'
    "<source>en3 en4</source><target>de3 de4</target></trans-unit></body></file></xliff>"
)
ANDROID = '<resources><string name="a">{0}1 {0}2</string></resources>'
FILES = {
    "de/app.po": PO,
    "de/broken.po": 'msgid "a\n',
    "de/app.xliff": XLIFF,
    "res/values/strings.xml": ANDROID.format("en"),
    "res/values-de/strings.xml": ANDROID.format("de"),
    "res/values-fr/strings.xml": ANDROID.format("fr"),
    "readme.txt": "no pairs",
    "picture.png": "none",
    ".hidden/app.po": PO,
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "l10n" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "l10n"


def score(*arguments, **options):
    return interlingua.score(embed, *arguments, cosine=True, **options)


def files_in(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files)


def test_a_folder_gives_one_output_each_and_names_what_it_could_not_read(folder, tmp_path):
    out = tmp_path / "out"
    found = score(folder, output=out)
    assert files_in(out) == [
        "de/app.po",
        "de/app.xliff",
        "res/values-de/strings.xml.tsv",
        "res/values-fr/strings.xml.tsv",
        "score.journal",
    ]
    assert len(found.failures) == 1
    assert "de/broken.po:1" in found.failures[0]
    assert next(read_pairs(out / "de/app.xliff")).score is not None
    assert "skipped: 2 files of other formats" in found.lines
    assert any(line.startswith("res/values-fr/strings.xml: 1 pair read") for line in found.lines)


def test_a_second_run_leaves_finished_outputs_and_does_what_is_new(folder, tmp_path):
    out = tmp_path / "out"
    score(folder, output=out)
    before = {name: (out / name).stat().st_mtime_ns for name in files_in(out)}
    (folder / "de/broken.po").write_text(PO)
    (folder / "de/app.po").write_text(PO.replace("en2", "en3"))
    (out / "de/app.xliff").write_text("damaged")
    found = score(folder, output=out)
    assert not found.failures
    changed = [
        name for name in files_in(out) if before.get(name) != (out / name).stat().st_mtime_ns
    ]
    assert changed == ["de/app.po", "de/app.xliff", "de/broken.po", "score.journal"]
    assert any("2 files finished by an earlier run" in line for line in found.lines)
    with pytest.raises(ConfigError, match=r"threshold.*--output"):
        score(folder, output=out, threshold=0.5)


def test_a_model_trained_again_scores_finished_files_again(folder, tmp_path, word_vocabulary):
    model, out = tmp_path / "model", tmp_path / "out"
    outputs = []
    for seed in (0, 0, 1):
        tiny_encoder(word_vocabulary, seed=seed).save(model)
        found = interlingua.score(str(model), folder, output=out, cosine=True, drop="none")
        skipped = any("earlier run" in line for line in found.lines)
        outputs.append((skipped, (out / "res/values-de/strings.xml.tsv").read_text()))
    assert [skipped for skipped, _ in outputs] == [False, True, False]
    assert outputs[0][1] == outputs[1][1] != outputs[2][1]


def test_one_output_for_all_of_another_model_has_no_rows_of_the_first(
    folder, tmp_path, word_vocabulary, monkeypatch
):
    model, output = tmp_path / "model", tmp_path / "all.tsv"

    def run(seed, name="all.tsv"):
        tiny_encoder(word_vocabulary, seed=seed).save(model)
        output = tmp_path / name
        interlingua.score(str(model), folder, output=output, cosine=True, drop="none")
        return output.read_text()

    whole = run(1, "whole.tsv")
    # The first run is stopped after the first file.
    write, finished = Journal.add, []

    def stop(journal, part):
        write(journal, part)
        finished.append(part)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", stop)
        with pytest.raises(KeyboardInterrupt):
            run(0)
    assert finished
    assert not output.exists()
    assert run(1) == whole


def test_one_output_for_all_has_a_column_of_the_file(folder, tmp_path):
    output = tmp_path / "all.tsv"
    found = score(folder, output=output)
    lines = [line.split("\t") for line in output.read_text().splitlines()]
    place = lines[0].index("file")
    assert [line[place] for line in lines[1:]] == [
        "de/app.po",
        "de/app.xliff",
        "res/values-de/strings.xml",
        "res/values-fr/strings.xml",
    ]
    assert len(found.failures) == 1


def test_python_streams_the_pairs_of_a_pattern(folder):
    found = score(f"{folder}/**/*.po")
    pairs = list(found)
    assert [pair.columns["file"] for pair in pairs] == ["de/app.po"]
    assert len(found.failures) == 1


def test_outputs_in_the_folder_itself_are_for_xliff_alone(folder):
    with pytest.raises(ConfigError, match=r"app\.po"):
        score(folder, output=folder)
    assert score(f"{folder}/de/*.xliff", output=folder / "de").failures == []
    assert next(read_pairs(folder / "de/app.xliff")).score is not None


@pytest.mark.parametrize("options", [{"learn": "c.json"}, {"rejected": "r.tsv"}])
def test_options_of_one_bitext_are_refused(folder, options):
    with pytest.raises(ConfigError, match=f"--{next(iter(options))}"):
        score(folder, **options)


def test_which_names_are_several_bitexts(folder, tmp_path):
    found = several_bitexts(folder / "res", None, None)
    assert [bitext.label for bitext in found.found] == [
        "values-de/strings.xml",
        "values-fr/strings.xml",
    ]
    assert len(several_bitexts(folder / "res", None, "fr").found) == 1
    assert several_bitexts(folder / "de/app.po") is None
    (tmp_path / "data.jsonl").write_text("{}\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text("{}")
    (tmp_path / "model/a.po").write_text(PO)
    assert several_bitexts(tmp_path / "model") is None
    with pytest.raises(DataError, match="pattern"):
        several_bitexts(tmp_path / "*.po")


def test_the_command_ends_with_2_and_the_rest_is_done(folder, tmp_path, run):
    result = run(f"score tests.mining.words:embed {folder} -o {tmp_path}/out/ --backend function")
    assert result.code == 2
    assert "de/broken.po:1" in result.err.splitlines()[-1]
    assert (tmp_path / "out/de/app.po").is_file()


def sheet_rows(path):
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def answer_rows(path, answers):
    """Write answers into a sheet by file and id."""
    rows = sheet_rows(path)
    lines = ["\t".join(rows[0])]
    for row in rows:
        row["answer"] = answers.get((row["file"], row["id"]), "")
        lines.append("\t".join(row.values()))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


TWICE = '<xliff version="1.2">{}</xliff>'.format(
    "".join(
        f'<file original="{name}" source-language="en" target-language="de"><body>'
        f'<trans-unit id="1"><source>en{n} en4</source><target>de{n} de4</target></trans-unit>'
        "</body></file>"
        for n, name in enumerate(("a.html", "b.html"))
    )
)


@pytest.mark.parametrize("output", ["all.tsv", "out"])
def test_one_sheet_for_all_files_and_its_answers_by_file(folder, tmp_path, output):
    (folder / "fr").mkdir()
    (folder / "fr/app.po").write_text(PO.replace(": de", ": fr").replace("de2", "de7"))
    (folder / "de/twice.xliff").write_text(TWICE)
    sheet = tmp_path / "review.tsv"
    found = score(folder, output=tmp_path / output, review=sheet, drop="none")
    rows = sheet_rows(sheet)
    assert len(rows) == 7
    assert len({(row["file"], row["id"], row["position"]) for row in rows}) == 7
    ids = [row["id"] for row in rows if row["file"] == "de/twice.xliff"]
    assert sorted(ids) == ["a.html: 1", "b.html: 1"]
    assert sorted(row["position"] for row in rows if row["file"] == "de/twice.xliff") == ["1", "2"]
    assert any(line.startswith("review: 7 of 7") and "--learn" not in line for line in found.lines)
    # The same texts have other answers in two files.
    answers = {
        ("res/values-de/strings.xml", "a"): "bad",
        ("res/values-fr/strings.xml", "a"): "good",
        ("de/twice.xliff", "b.html: 1"): "bad",
    }
    answer_rows(sheet, answers)
    found = score(folder, output=tmp_path / "clean.tsv", labels=sheet, drop="none")
    kept = [(row["file"], row.get("original", "")) for row in sheet_rows(tmp_path / "clean.tsv")]
    assert kept == [
        ("de/app.po", ""),
        ("de/app.xliff", ""),
        ("de/twice.xliff", "a.html"),
        ("fr/app.po", ""),
        ("res/values-fr/strings.xml", ""),
    ]
    assert any("labels: 1 good, 2 bad" in line for line in found.lines)


def test_answers_for_all_files_and_of_unknown_files(folder, tmp_path):
    labels = tmp_path / "labels.tsv"
    labels.write_text("0\ten1 en2\tde1 de2\n1\tx\ty\n")
    (folder / "de/broken.po").unlink()
    found = score(folder, output=tmp_path / "a.tsv", labels=labels)
    assert "de/app.po" not in (tmp_path / "a.tsv").read_text()
    assert len([line for line in found.lines if "1 judged pair of 2" in line]) == 1
    labels.write_text("file\tsource\ttarget\tanswer\nno.po\ten1 en2\tde1 de2\tbad\n")
    found = score(folder, output=tmp_path / "b.tsv", labels=labels)
    assert "de/app.po" in (tmp_path / "b.tsv").read_text()
    assert any("warning: 1 judged pair" in line and "no.po" in line for line in found.lines)


def test_other_answers_and_a_sheet_score_finished_files_again(folder, tmp_path):
    out, labels = tmp_path / "out", folder / "labels.tsv"
    (folder / "de/broken.po").unlink()
    labels.write_text("1\ten1 en2\tde1 de2\n")
    score(folder, output=out, labels=labels)
    assert (out / "de/app.po").stat().st_size > 0
    assert not (out / "labels.tsv").exists()
    labels.write_text("0\ten1 en2\tde1 de2\n")
    found = score(folder, output=out, labels=labels)
    assert list(read_pairs(out / "de/app.po")) == []
    assert not any("earlier run" in line for line in found.lines)
    found = score(folder, output=out, labels=labels, review=tmp_path / "r.csv")
    assert any(line.startswith("review: 4 of 4") for line in found.lines)
    assert any(
        "4 files finished by an earlier run" in line
        for line in score(folder, output=out, labels=labels).lines
    )


SEEN = []


def noted_embed(texts):
    """Embed texts, note them, and stop at some of them."""
    SEEN.extend(texts)
    if "stop" in SEEN and "en3 en4" in SEEN:
        raise KeyboardInterrupt
    return embed(texts)


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".tmx", ".xlsx"])
def test_one_output_for_all_resumes_with_the_finished_files(folder, tmp_path, suffix):
    whole, output = tmp_path / f"whole{suffix}", tmp_path / f"all{suffix}"
    score(folder, output=whole)
    SEEN[:] = ["stop"]
    with pytest.raises(KeyboardInterrupt):
        interlingua.score(noted_embed, folder, output=output, cosine=True)
    assert not output.exists()
    parts = tmp_path / f"all{suffix}.parts"
    assert len(list(parts.glob("rows/*.jsonl"))) == 1
    with pytest.raises(ConfigError, match=r"threshold.*\.parts"):
        interlingua.score(noted_embed, folder, output=output, cosine=True, threshold=0.1)
    SEEN.clear()
    found = interlingua.score(noted_embed, folder, output=output, cosine=True)
    assert "1 file finished by an earlier run" in found.lines
    assert SEEN[:2] == ["en3 en4", "de3 de4"]
    if suffix == ".tsv":
        assert output.read_text() == whole.read_text()
    else:
        assert list(map(tuple, read_pairs(output))) == list(map(tuple, read_pairs(whole)))
    assert not parts.exists()


def test_pairs_before_the_fault_of_a_file_are_not_in_one_output_for_all(folder, tmp_path):
    unit = XLIFF[XLIFF.index("<trans-unit") : XLIFF.index("</body>")]
    (folder / "de/cut.xliff").write_text(XLIFF[: XLIFF.index("<trans-unit")] + 9 * unit + "<")
    found = score(folder, output=tmp_path / "all.tsv", window=2)
    assert len(found.failures) == 2
    assert "cut" not in (tmp_path / "all.tsv").read_text()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".xlsx", ".tmx"])
def test_one_output_for_all_has_one_style_of_language_codes(folder, tmp_path, suffix):
    for code in ("de-rCH", "pt-rBR"):
        path = folder / "res" / f"values-{code}/strings.xml"
        path.parent.mkdir()
        path.write_text(ANDROID.format(code[:2] + "9"))
    output = tmp_path / f"all{suffix}"
    score(folder / "res", output=output, drop="none")
    pairs = list(read_pairs(output))
    found = sorted(written_tag(pair.target_language) for pair in pairs)
    assert found == ["de", "de-CH", "fr", "pt-BR"]
    assert sorted(pair.target[:3] for pair in pairs) == ["de1", "de9", "fr1", "pt9"]
    if suffix == ".csv":
        rows = list(csv.DictReader(output.read_text(encoding="utf-8-sig").splitlines()))
        assert sorted(row["target_language"] for row in rows) == found
        assert {row["source_language"] for row in rows} == {"en"}
    streamed = score(folder / "res", drop="none").to_pandas()
    assert len(streamed) == 4


def test_another_set_of_checks_that_can_run_scores_finished_files_again(
    folder, tmp_path, monkeypatch
):
    # "all" leaves out a check whose package is not installed, and the journal holds "all".
    skipped = []
    for left_out in ({}, {"language": "not installed"}, {"language": "not installed"}):
        monkeypatch.setattr(
            "interlingua.mining.checks._left_out_of_all",
            lambda glossary, limits, left_out=left_out: {"glossary": "none", **left_out},
        )
        found = score(folder, output=tmp_path / "out", checks="all")
        skipped.append(any("earlier run" in line for line in found.lines))
    assert skipped == [False, False, True]
