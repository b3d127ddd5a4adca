"""Each how-to starts with a sentence, the shortest command, and what that prints.

The session is run here on small files: real texts and the model ``mini``, or invented words if a
model is trained. ``UPDATE_DOCS=1`` writes the output into the page.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from interlingua.runtime import progress
from tests.adapt import invented as invented_language
from tests.adapt.conftest import word_encoder
from tests.conftest import pairs
from tests.corpus.inspection.made import faulty, german_english, write_rows
from tests.docs.markdown import has_model
from tests.docs.sessions import compare_page, follow_opening, is_excerpt, opening_of
from tests.tiny import tiny_encoder

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted([*DOCS.glob("how-to/*.md"), *DOCS.glob("tutorials/*.md")])
OF_PYTHON = {
    "from-sentence-transformers",
    "search-your-documents",
    "train-from-python",
    "vector-stores",
}
"""Pages about Python, which begin with code."""
ELSEWHERE = {"plug-ins", "serve", "quickstart"}
"""Pages with an opening that a test of their own compares, or that takes minutes."""
NANO = DOCS.parent / "models" / "nano" / "src" / "interlingua_nano" / "model"
PROBE = [
    line.split("\t")
    for line in (resources.files("interlingua") / "data" / "probe.tsv")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
]
"""Sentences in English, in English with other words, German, Spanish, Russian and Chinese."""
ENGLISH, OTHER_ENGLISH, GERMAN, SPANISH, RUSSIAN = range(5)
CHAPTER = {
    "de": "Die Burg steht auf einem Hügel über der Stadt.\nSie wurde im 12. Jahrhundert gebaut.\n"
    "Heute ist sie ein Museum.\nMontags ist es geschlossen.\nVom Turm aus sieht man den Fluss.\n",
    "en": "The castle stands on a hill above the town. It was built in the 12th century.\n"
    "Today it is a museum.\nIt is closed on Mondays.\nAdmission is free for children.\n"
    "The river can be seen from the tower.\n",
}
MEMORY = [
    ("Bitte starten Sie das Gerät neu.", "Please restart the device."),
    (
        "Der Akku muss vor dem ersten Gebrauch geladen werden.",
        "Charge the battery before first use.",
    ),
    ("Drücken Sie die Taste drei Sekunden lang.", "Press the button for three seconds."),
    ("Die Garantie gilt zwei Jahre.", "Store in a dry place."),
    ("Die Lieferung enthält 2 Schrauben.", "The package contains 4 screws."),
]


def column(number):
    return [row[number] for row in PROBE]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_pairs(path, rows):
    write(path, [f"{a}\t{b}" for a, b in rows])


def chapters(folder, vocabulary):
    for language, text in CHAPTER.items():
        (folder / f"chapter.{language}.txt").write_text(text, encoding="utf-8")


def translated_sentences(folder, vocabulary):
    for code, number in (("deu", GERMAN), ("spa", SPANISH), ("eng", ENGLISH)):
        write(folder / "my_sentences" / f"{code}_Latn.txt", column(number))


def texts_of_languages(folder, vocabulary):
    (folder / "nano").symlink_to(NANO)
    for code, number in (("de", GERMAN), ("ru", RUSSIAN), ("en", ENGLISH)):
        write(folder / "texts" / f"{code}.txt", column(number))


def two_models(folder, vocabulary):
    for seed, name in ((1, "start"), (3, "trained")):
        word_encoder(vocabulary, seed).save(folder / name)
    write_pairs(
        folder / "heldout.de-en.tsv", [(f"de{n} de{n + 1}", f"en{n} en{n + 1}") for n in range(12)]
    )
    write(folder / "sts.en.dev.tsv", [f"{n / 2}\ten{n} en1\ten{2 * n} en3" for n in range(10)])


def manuals(folder, vocabulary):
    half = len(CHAPTER["de"].splitlines())
    for language, number in (("de", GERMAN), ("en", ENGLISH)):
        title = {"de": "Die Burg", "en": "The castle"}[language]
        write(
            folder / f"manuals/{language}/castle.md",
            [f"# {title}", "", *CHAPTER[language].splitlines()],
        )
        write(folder / f"manuals/{language}/travel.md", [" ".join(column(number)[:half])])
    write(folder / "manuals/de/news.md", ["Der Bürgermeister tritt im Herbst nicht mehr an."])
    (folder / "manuals/de/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")


def translations(folder, vocabulary):
    write_pairs(
        folder / "ours" / "deu-eng.tsv", zip(column(GERMAN)[:8], column(ENGLISH)[:8], strict=True)
    )


def added_language(folder, vocabulary):
    invented_language.workplace(folder)


def noisy_and_trusted(folder, vocabulary):
    rows = german_english(400)
    write_pairs(folder / "trusted.de-en.tsv", rows[:100])
    noisy = [
        (a, rows[n + 3][1] if n % 3 == 0 else b) for n, (a, b) in enumerate(rows[100:390], 100)
    ]
    write_pairs(folder / "noisy.de-en.tsv", noisy)


def model_and_bitext(folder, vocabulary):
    encoder = tiny_encoder(vocabulary)
    prompts = {"query": "en1: ", "passage": "en2: "}
    encoder.settings = dataclasses.replace(encoder.settings, prompts=prompts)
    encoder.save(folder / "model")
    write_pairs(folder / "bitext.de-en.tsv", pairs("deu_Latn", 700, seed=0))


def own_bitext(folder, vocabulary):
    for language, code in (("deu_Latn", "de"), ("fra_Latn", "fr")):
        write_pairs(folder / f"bitext.{code}-en.tsv", pairs(language, 700, seed=0))
    write_pairs(folder / "tests" / "deu-eng.tsv", pairs("deu_Latn", 40, seed=5))


def news(folder, vocabulary):
    german, english = zip(*MEMORY, strict=True)
    write(folder / "news.de.txt", [*column(GERMAN), *german, *CHAPTER["de"].splitlines()])
    write(folder / "news.en.txt", [*column(ENGLISH)[::-1], *column(OTHER_ENGLISH)[:9], *english])


def texts(folder, vocabulary):
    write(folder / "news.en.txt", column(ENGLISH)[:3])
    write(folder / "news.de.txt", column(GERMAN)[:3])


def crawl(folder, vocabulary):
    rows = german_english(2000)
    (folder / "our-test-set").mkdir()
    write_rows(folder / "our-test-set" / "deu-eng.tsv", rows[900:912])
    write_rows(folder / "crawl.de-en.tsv", faulty(rows))


def guide_corpus(folder, vocabulary):
    text = (DOCS / "how-to" / "prepare.md").read_text(encoding="utf-8")
    corpus = re.search(r"^```tsv\n[^\n]*\n(.*?)^```", text, re.M | re.S)[1]
    (folder / "corpus.de-en.tsv").write_text(corpus, encoding="utf-8")


def memory(folder, vocabulary):
    write_pairs(folder / "memory.de-en.tsv", MEMORY)


def passages(folder, vocabulary):
    text = (DOCS / "how-to" / "search-your-documents.md").read_text(encoding="utf-8")
    lines = re.search(r"^```text\n(.*?)^```", text, re.M | re.S)[1].splitlines()
    for code, line in zip(("de", "en", "fr", "pt", "ru", "ja", "es"), lines, strict=True):
        write(folder / "texts" / f"{code}.txt", [line])


def nothing(folder, vocabulary):
    pass


FILES = {
    "align": chapters,
    "analyse": translated_sentences,
    "average": two_models,
    "debias": texts_of_languages,
    "documents": manuals,
    "evaluate": translations,
    "export": nothing,
    "extend": added_language,
    "filter-and-train": noisy_and_trusted,
    "fine-tune": model_and_bitext,
    "install": nothing,
    "integrations": texts,
    "look": crawl,
    "mine": news,
    "own-files": own_bitext,
    "prepare": guide_corpus,
    "score": memory,
    "search": passages,
    "small-vectors": texts,
    "train": nothing,
}
"""Page -> the files that its session reads."""
NEEDS = {
    "export": "sentence_transformers",
    "integrations": "pyarrow",
    "search": "lancedb",
}
"""Page -> the package of an extra that it uses."""
TRAINS = {"average", "extend", "fine-tune", "look", "own-files", "prepare", "train"}
"""Pages that do without ``mini``."""


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_first_session_prints_what_the_page_shows(
    name, tmp_path, monkeypatch, word_vocabulary, prepared
):
    if name not in TRAINS and not has_model():
        pytest.skip("the default model is not installed")
    if name == "debias" and not (NANO / "model.safetensors").is_file():
        pytest.skip("nano is not here with its weights")
    pytest.importorskip(NEEDS.get(name, "interlingua"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "EVERY_SECONDS", 3600.0)
    if name == "train":
        (tmp_path / "prepared").symlink_to(prepared)
    FILES[name](tmp_path, word_vocabulary)
    [page] = [one for one in PAGES if one.stem == name]
    compare_page(page, follow_opening(page.read_text(encoding="utf-8"), tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_begins_with_a_command_and_its_output(page):
    text = page.read_text(encoding="utf-8")
    if page.stem in OF_PYTHON:
        first = re.search(r"^(?:```(\w*)\n(.*?)^```|## )", text, re.M | re.S)
        assert first.group(1) == "python"
        return
    opening = opening_of(text)
    assert opening is not None
    before = re.sub(r"\A# [^\n]*\n", "", text[: opening.start()]).strip()
    assert len(before.split()) <= 50, before
    lines = opening.group(2).splitlines()
    assert any(line and not line.startswith("$ ") for line in lines), "no output"
    assert page.stem in {*FILES, *ELSEWHERE, "train-on-a-cluster"}


def test_two_processes_print_what_the_page_shows(tmp_path, prepared):
    page = DOCS / "how-to" / "train-on-a-cluster.md"
    text = page.read_text(encoding="utf-8")
    config = (DOCS / "how-to" / "train.md").read_text(encoding="utf-8")
    body = re.search(r"^```toml\n(# train.toml\n.*?)^```", config, re.M | re.S)[1]
    (tmp_path / "run.toml").write_text(body, encoding="utf-8")
    (tmp_path / "prepared").symlink_to(prepared)
    opening = opening_of(text)
    command = opening.group(2).split("\n", 1)[0]
    done = subprocess.run(
        [sys.executable, "-m", *command.removeprefix("$ ").split()],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    output = done.stdout.replace(f"{tmp_path}{os.sep}", "")
    output = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
    shown = opening.group(2).removeprefix(f"{command}\n")
    if is_excerpt(shown, output):
        output = shown
    compare_page(page, f"{text[: opening.start(2)]}{command}\n{output}{text[opening.end(2) :]}")
