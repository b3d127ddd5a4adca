"""``score`` on folders and patterns: one output each, one for all, and files that can't be read."""

from __future__ import annotations

import pytest

import interlingua
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.localization.bitext_folders import several_bitexts
from interlingua.errors import ConfigError, DataError
from tests.mining.words import embed

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
