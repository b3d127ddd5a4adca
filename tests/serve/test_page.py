"""The page in a real browser; skipped where Playwright or Chromium is not installed."""

from __future__ import annotations

import shutil
import socket
import threading
import time

import pytest
import uvicorn

from interlingua.corpus.formats import read_pairs
from interlingua.serve.app import make_app
from interlingua.serve.link_probabilities import LinkCalibrations
from interlingua.serve.model import ServedModel
from interlingua.serve.settings import ServeSettings

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")]


@pytest.fixture(scope="module")
def address(encoder, searcher, calibrated):
    """A server in a thread that asks for a key, with an index and a calibration."""
    settings = ServeSettings(api_key="secret")
    model = ServedModel(encoder, "tiny")
    calibrations = LinkCalibrations(model, calibrated / "cosine.json")
    app = make_app(model, settings, write_line=lambda _: None, searcher=searcher, calibrations=calibrations)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[(1100, "light"), (390, "dark")], ids=["desktop", "phone"])
def page(request, browser, address):
    """The page with its key, and a check at the end that no script failed."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    playwright.expect(page.locator("#model")).to_contain_text("Bearer")
    page.fill("#key", "secret")
    page.press("#key", "Tab")
    playwright.expect(page.locator("#model")).to_contain_text("tiny: 32 dimensions")
    yield page
    assert faults == []
    page.close()


def test_a_matrix_of_sentences(page):
    page.fill("#sentences", "en1 en2\n\nde1 de2\nen7")
    page.click("text=Compare")
    cells = page.locator("#similarity td:not(:empty)")
    playwright.expect(cells).to_have_count(9)
    assert [cells.nth(i).inner_text() for i in (0, 4, 8)] == ["1.00", "1.00", "1.00"]
    width = page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]


def align(page, source, target):
    page.click("#tab-align")
    page.fill("#source", source)
    page.fill("#target", target)
    page.press("#target", "Tab")
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#align .status")).to_contain_text("links")


def saved(page, form, path):
    with page.expect_download() as download:
        page.click(f"text=Save as {form}")
    download.value.save_as(path)
    return list(read_pairs(str(path), source_language="en", target_language="de"))


def test_aligned_sentences_have_probabilities(page, tmp_path):
    align(page, "en1 <b> en2.\nen3.\nen4 en5.", "de1 de2.\nde3.\nde4 de5.")
    playwright.expect(page.locator("#align .note")).to_be_hidden()
    shown = page.locator("#align tbody td:last-child").all_inner_texts()
    in_tsv = saved(page, "TSV", tmp_path / "aligned.tsv")
    in_tmx = saved(page, "TMX", tmp_path / "aligned.tmx")
    assert [(pair.source, pair.target) for pair in in_tmx] == [(pair.source, pair.target) for pair in in_tsv]
    for pairs in (in_tsv, in_tmx):
        assert [f"{pair.score:.3f}" for pair in pairs] == [text for text in shown if text != "–"]
    assert " ".join(pair.source for pair in in_tmx).count("<b>") == 1


def test_without_probabilities_the_page_says_why(page, tmp_path):
    page.click("#tab-align")
    page.fill("#source-code", "fr")
    page.fill("#target-code", "")
    align(page, "Un\u2028deux.\nTrois.", "Eins.\nZwei.")
    playwright.expect(page.locator("#align .note")).to_contain_text("No probabilities: name both languages")
    pairs = saved(page, "TSV", tmp_path / "aligned.tsv")
    assert pairs
    assert {pair.score for pair in pairs} == {None}


def test_tokens_that_match(page):
    page.click("#tab-tokens")
    page.fill("#first", "en1 en2")
    page.fill("#second", "en1 en2")
    page.click("text=Match tokens")
    playwright.expect(page.locator("#tokens td.best")).to_have_count(2)
    assert page.locator("#tokens td.best").all_inner_texts() == ["1.00", "1.00"]


def test_passages_are_found(page):
    page.click("#tab-search")
    page.fill("#question", "de3 en4")
    page.select_option("#in-language", "eng_Latn")
    page.fill("#per-language", "4")
    page.press("#question", "Enter")
    playwright.expect(page.locator("#search .status")).to_contain_text("10 passages")
    playwright.expect(page.locator("#search li")).to_have_count(10)
    assert page.locator("#search tbody td").all_inner_texts() == ["eng_Latn", "100 %", "100 %"]
    assert page.evaluate("() => document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_tabs_by_keyboard(page):
    page.focus("#tab-similarity")
    page.keyboard.press("ArrowRight")
    playwright.expect(page.locator("#tab-align")).to_be_focused()
    playwright.expect(page.locator("#align")).to_be_visible()
    playwright.expect(page.locator("#similarity")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    playwright.expect(page.locator("#tab-search")).to_be_focused()


def test_an_error_is_shown(page):
    page.fill("#sentences", "one")
    page.click("text=Compare")
    playwright.expect(page.locator("#similarity .status.error")).to_contain_text("at least two")
