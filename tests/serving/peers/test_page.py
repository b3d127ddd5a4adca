"""The page in a real browser; skipped where Playwright or Chromium is not installed."""

from __future__ import annotations

import contextlib
import json
import re
import shutil

import pytest
import torch

from interlingua.corpus.formats.bitext import read_pairs
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.language_shift import LanguageShift, write_shift
from interlingua.retrieval.chunks import ChunkSettings
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.searcher import Searcher, build_index, model_for
from interlingua.serving.app import make_app
from interlingua.serving.model import ServedModel
from interlingua.serving.routes.link_probabilities import LinkCalibrations
from interlingua.serving.settings import ServeSettings
from tests.serving.conftest import served

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@pytest.fixture(scope="module")
def address(encoder, searcher, calibrated):
    """A server that asks for a key, with an index and a calibration."""
    settings = ServeSettings(api_key="secret")
    model = ServedModel(encoder, "tiny")
    calibrations = LinkCalibrations(model, calibrated / "cosine.json")
    app = make_app(
        model, settings, write_line=lambda _: None, searcher=searcher, calibrations=calibrations
    )
    with served(app) as found:
        yield found


@pytest.fixture(scope="module")
def documents_address(encoder, tmp_path_factory):
    """A server with an index of a section, of a cut record, and of one with a link."""
    folder = tmp_path_factory.mktemp("documents")
    encoder.save(folder / "model")
    (folder / "en.guide.md").write_text("# Guide\n\n## Boats\n\nen1 en2 en3\n")
    cut = {"id": "r1", "title": "Cut", "text": " ".join(f"en{n} en5 en6." for n in range(9))}
    linked = {"id": "r2", "title": "عنوان", "text": "en4", "language": "ar", "year": 2024}
    linked["url"] = "https://example.org/" + 90 * "a"
    bare = {"id": "r3", "text": "en7", "href": "https://example.org/" + 90 * "b"}
    lines = [json.dumps(record) for record in (cut, linked, bare)]
    (folder / "en.jsonl").write_text("\n".join(lines))
    files = [folder / "en.guide.md", folder / "en.jsonl"]
    chunks = ChunkSettings(16, 0)
    build_index(str(folder / "model"), files, folder / "index", chunks=chunks)
    found = Searcher(PassageIndex(folder / "index"), model_for(folder / "index", encoder, "tiny"))
    app = make_app(
        ServedModel(encoder, "tiny"), ServeSettings(), write_line=lambda _: None, searcher=found
    )
    with served(app) as address:
        yield address


@pytest.fixture(scope="module")
def shifted_address(encoder, tmp_path_factory):
    """A server without a key, with a model that shifts vectors by language and an index of it."""
    folder = tmp_path_factory.mktemp("shifted")
    encoder.save(folder / "model")
    means = torch.randn(2, encoder.dim, generator=torch.Generator().manual_seed(0))
    write_shift(LanguageShift(["deu_Latn", "eng_Latn"], means), folder / "model")
    for code in ("deu_Latn", "eng_Latn"):
        (folder / f"{code}.txt").write_text(
            "".join(f"{code[:2]}{n} {code[:2]}{n + 1}\n" for n in range(5))
        )
    build_index(str(folder / "model"), sorted(folder.glob("*.txt")), folder / "index")
    shifted = Encoder.load(folder / "model")
    found = Searcher(
        PassageIndex(folder / "index"), model_for(folder / "index", shifted, "shifted")
    )
    app = make_app(
        ServedModel(shifted, "shifted"), ServeSettings(), write_line=lambda _: None, searcher=found
    )
    with served(app) as at:
        yield at


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, address, *, width=1100, scheme="light"):
    """Open a tab of the page, and check at the end that no script failed."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    yield page
    assert faults == []
    page.close()


@pytest.fixture(params=[(1100, "light"), (390, "dark")], ids=["desktop", "phone"])
def page(request, browser, address):
    """The page with its key."""
    width, scheme = request.param
    with opened(browser, address, width=width, scheme=scheme) as page:
        playwright.expect(page.locator("#model")).to_contain_text("Bearer")
        page.fill("#key", "secret")
        page.press("#key", "Tab")
        playwright.expect(page.locator("#model")).to_contain_text("tiny: 32 dimensions")
        yield page


@pytest.fixture
def shifted_page(browser, shifted_address):
    """The page of a model that needs languages."""
    with opened(browser, shifted_address, width=390) as page:
        playwright.expect(page.locator("#model")).to_contain_text("shifted: 32 dimensions")
        yield page


def fits(page):
    """Return whether nothing is wider than the window."""
    return (
        page.evaluate("() => document.documentElement.scrollWidth") <= page.viewport_size["width"]
    )


def test_a_matrix_of_sentences(page):
    page.fill("#sentences", "en1 en2\n\nde1 de2\nen7")
    page.click("text=Compare")
    cells = page.locator("#similarity td:not(:empty)")
    playwright.expect(cells).to_have_count(9)
    assert [cells.nth(i).inner_text() for i in (0, 4, 8)] == ["1.00", "1.00", "1.00"]
    for name in ("1 en1 en2", "2 de1 de2", "3 en7"):
        playwright.expect(page.get_by_role("columnheader", name=name, exact=True)).to_have_count(1)
    playwright.expect(
        page.get_by_role("table", name="Cosines between the sentences")
    ).to_be_visible()
    assert fits(page)


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
    languages = page.evaluate(
        "() => [...document.querySelectorAll('#align tbody [lang]')].map((cell) => cell.lang)"
    )
    assert languages == ["en", "de"] * len(shown)
    in_tsv = saved(page, "TSV", tmp_path / "aligned.tsv")
    in_tmx = saved(page, "TMX", tmp_path / "aligned.tmx")
    assert [(pair.source, pair.target) for pair in in_tmx] == [
        (pair.source, pair.target) for pair in in_tsv
    ]
    for pairs in (in_tsv, in_tmx):
        assert [f"{pair.score:.3f}" for pair in pairs] == [text for text in shown if text != "–"]
    assert " ".join(pair.source for pair in in_tmx).count("<b>") == 1


def test_without_probabilities_the_page_says_why(page, tmp_path):
    page.click("#tab-align")
    page.fill("#source-code", "fr")
    page.fill("#target-code", "")
    align(page, "Un\u2028deux.\nTrois.", "Eins.\nZwei.")
    playwright.expect(page.locator("#align .note")).to_contain_text(
        "No probabilities: name both languages"
    )
    pairs = saved(page, "TSV", tmp_path / "aligned.tsv")
    assert pairs
    assert {pair.score for pair in pairs} == {None}


def test_tokens_that_match(page):
    page.click("#tab-tokens")
    page.fill("#first", "en1 en2")
    page.fill("#second", "en1 en2")
    page.click("text=Match tokens")
    playwright.expect(page.locator("#tokens td.best")).to_have_count(2)
    playwright.expect(
        page.get_by_role("cell", name="1.00 each other's nearest", exact=True)
    ).to_have_count(2)
    assert page.locator("#tokens .best .spoken").first.bounding_box()["width"] <= 1
    playwright.expect(page.get_by_role("table", name="Cosines between the tokens")).to_be_visible()
    assert fits(page)


def test_passages_are_found(page):
    page.click("#tab-search")
    page.fill("#question", "de3 en4")
    page.select_option("#in-language", "eng_Latn")
    page.fill("#per-language", "4")
    page.press("#question", "Enter")
    playwright.expect(page.locator("#search .status")).to_contain_text("10 passages")
    playwright.expect(page.locator("#search li")).to_have_count(10)
    assert page.locator("#search tbody td").all_inner_texts() == ["eng_Latn", "100 %", "100 %"]
    assert page.locator("#search li [lang]").first.get_attribute("lang") == "en"
    assert fits(page)


def test_hits_show_headings_offsets_metadata_and_links(browser, documents_address):
    with opened(browser, documents_address, width=390) as page:
        page.click("#tab-search")
        page.fill("#question", "en1 en2 en3")
        page.press("#question", "Enter")
        hits = page.locator("#search li")
        section = hits.filter(has_text="Guide › Boats")
        assert section.locator(".context").inner_text() == "Guide › Boats"
        assert section.locator("p").nth(1).inner_text() == "en1 en2 en3"
        chunk = hits.filter(has_text="r1#2").locator(".origin").first
        assert re.search(r"r1#2 \(offset [1-9]\d*\)", chunk.inner_text())
        linked = hits.filter(has_text="عنوان")
        assert linked.locator("a").get_attribute("href").startswith("https://example.org/a")
        assert linked.locator(".context").evaluate("e => getComputedStyle(e).direction") == "rtl"
        assert linked.locator(".origin").last.inner_text() == "year: 2024"
        bare = hits.filter(has_text="r3")
        assert bare.inner_text().count("https://example.org/b") == 1
        assert fits(page)


def test_tabs_by_keyboard(page):
    page.focus("#tab-similarity")
    page.keyboard.press("ArrowRight")
    playwright.expect(page.locator("#tab-align")).to_be_focused()
    playwright.expect(page.locator("#align")).to_be_visible()
    playwright.expect(page.locator("#similarity")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    playwright.expect(page.locator("#tab-search")).to_be_focused()


def test_an_error_is_shown_in_place_of_the_old_result(page):
    page.click("text=Compare")
    playwright.expect(page.locator("#similarity table")).to_be_visible()
    page.fill("#sentences", "one")
    page.click("text=Compare")
    playwright.expect(page.locator("#similarity .status.error")).to_contain_text("at least two")
    playwright.expect(page.locator("#similarity table")).to_have_count(0)
    align(page, "en1.", "de1.")
    playwright.expect(page.locator("#align .downloads")).to_be_visible()
    page.fill("#source-code", "Klingonese")
    page.click("#align button[type=submit]")
    playwright.expect(page.locator("#align .status.error")).to_contain_text("Klingonese")
    playwright.expect(page.locator("#align .downloads")).to_be_hidden()
    playwright.expect(page.locator("#align table")).to_have_count(0)


def test_only_a_place_with_a_result_is_a_tab_stop(page):
    page.focus("#similarity form button")
    page.keyboard.press("Tab")
    playwright.expect(page.locator("#document")).to_be_focused()
    page.click("text=Compare")
    playwright.expect(page.locator("#similarity .scroll")).to_be_visible()
    page.focus("#similarity form button")
    page.keyboard.press("Tab")
    playwright.expect(page.locator("#similarity .scroll")).to_be_focused()


def test_an_earlier_request_is_aborted_by_a_later_one(page):
    page.route("**/tokens", lambda route: waiting.append(route))
    waiting = []
    page.click("#tab-tokens")
    page.fill("#first", "en1 en2 en3")
    page.click("text=Match tokens")
    while not waiting:
        page.wait_for_timeout(10)
    page.fill("#first", "en4")
    with page.expect_event("requestfailed") as aborted:
        page.click("text=Match tokens")
    assert aborted.value.post_data_json["source"] == "en1 en2 en3"
    while len(waiting) < 2:
        page.wait_for_timeout(10)
    with page.expect_response("**/tokens"):
        waiting[1].continue_()
    playwright.expect(page.locator("#tokens tbody th")).to_have_text(["en4"])
    playwright.expect(page.locator("#tokens .status")).to_contain_text("underlined")


def test_a_matrix_of_many_sentences(page):
    """Use more numbers than a function of JavaScript takes as arguments."""
    made = """() => {
      const heads = Array.from({ length: 400 }, () => element("th"));
      const row = (_, i) => heads.map((_, j) => (i === j ? 1 : 0.5));
      const shown = matrix("many", heads, [], heads.map(row));
      const cells = [...shown.rows[1].cells].slice(1, 3);
      return cells.map((cell) => cell.style.getPropertyValue("--share"));
    }"""
    assert page.evaluate(made) == ["0.6", "0"]


@pytest.mark.parametrize(
    ("typed", "tags"),
    [
        (("German", "eng_Latn"), ["de", "en"]),
        (("sr@latin", ""), ["sr-Latn", "und"]),
        (("zho_Hant", "kmr"), ["zh-TW", "ku"]),
    ],
)
def test_languages_in_tmx_are_of_bcp_47(page, tmp_path, typed, tags):
    page.click("#tab-align")
    page.fill("#source-code", typed[0])
    page.fill("#target-code", typed[1])
    align(page, "en1.", "de1.")
    with page.expect_download() as download:
        page.click("text=Save as TMX")
    download.value.save_as(tmp_path / "aligned.tmx")
    found = re.findall('xml:lang="([^"]*)"', (tmp_path / "aligned.tmx").read_text())
    assert found == tags
    shown = page.evaluate(
        "() => [...document.querySelectorAll('#align tbody [lang]')].map((cell) => cell.lang)"
    )
    assert [tag or "und" for tag in shown] == tags


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            {"status": 502, "content_type": "text/html", "body": "<h1>Bad Gateway</h1>"},
            "answered with status 502",
        ),
        (
            {"status": 500, "content_type": "text/plain", "body": "Internal Server Error"},
            "answered with status 500",
        ),
        (
            {"status": 200, "content_type": "text/html", "body": "<h1>Log in</h1>"},
            "answered with status 200",
        ),
        (None, "cannot be reached"),
    ],
)
def test_what_is_no_answer_of_the_server_is_explained(page, reply, message):
    page.route("**/embed", lambda route: route.abort() if reply is None else route.fulfill(**reply))
    page.click("text=Compare")
    playwright.expect(page.locator("#similarity .status.error")).to_contain_text(message)


def test_the_document_is_saved_with_the_key(page, tmp_path):
    with page.expect_download() as download:
        page.click("#document")
    download.value.save_as(tmp_path / "openapi.json")
    assert "/align" in json.loads((tmp_path / "openapi.json").read_text())["paths"]
    page.fill("#key", "wrong")
    page.click("#document")
    playwright.expect(page.locator("#document-status.error")).to_contain_text("Bearer")


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("deu_Latn", "de"),
        ("English", ""),
        ("", ""),
        ("arb_Arab", "ar"),
        ("srp_Latn", "sr-Latn"),
        ("zho_Hans", "zh"),
    ],
)
def test_codes_as_html_has_them(page, code, tag):
    assert page.evaluate("(code) => languageTag(code)", code) == tag


def test_fields_of_languages_are_shown_where_needed(page, shifted_page):
    for shown_page, ids in (
        (page, []),
        (shifted_page, ["sentence-codes", "first-code", "second-code", "question-code"]),
    ):
        fields = shown_page.locator("[data-needs]:not([hidden]) input").all()
        assert [field.get_attribute("id") for field in fields] == ids


def test_a_matrix_by_a_model_that_needs_languages(shifted_page):
    shifted_page.fill("#sentences", "en1 en2\nde1 de2\nen1 en2")
    shifted_page.fill("#sentence-codes", "en de eng_Latn")
    shifted_page.click("text=Compare")
    cells = shifted_page.locator("#similarity tbody td")
    playwright.expect(cells).to_have_count(9)
    assert cells.nth(2).inner_text() == "1.00"
    heads = shifted_page.locator("#similarity tbody th")
    assert [heads.nth(row).get_attribute("lang") for row in range(3)] == ["en", "de", "en"]
    shifted_page.fill("#sentence-codes", "en de")
    shifted_page.click("text=Compare")
    playwright.expect(shifted_page.locator("#similarity .error")).to_contain_text(
        "3 lines and 2 languages"
    )
    shifted_page.fill("#sentence-codes", "en")
    shifted_page.click("text=Compare")
    playwright.expect(cells).to_have_count(9)
    assert fits(shifted_page)


def test_tokens_by_a_model_that_needs_languages(shifted_page):
    shifted_page.click("#tab-tokens")
    shifted_page.fill("#first", "en1 en2")
    with shifted_page.expect_request("**/tokens") as sent:
        shifted_page.click("text=Match tokens")
    assert (
        sent.value.post_data_json["source_language"],
        sent.value.post_data_json["target_language"],
    ) == ("en", "de")
    playwright.expect(shifted_page.locator("#tokens tbody th").first).to_have_attribute(
        "lang", "en"
    )
    playwright.expect(shifted_page.locator("#tokens thead th").first).to_have_attribute(
        "lang", "de"
    )
    assert fits(shifted_page)


def test_a_question_to_a_model_that_needs_languages(shifted_page):
    shifted_page.click("#tab-search")
    shifted_page.fill("#question", "de3 de4")
    shifted_page.press("#question", "Enter")
    playwright.expect(shifted_page.locator("#search .error")).to_contain_text("send language")
    shifted_page.fill("#question-code", "de")
    shifted_page.press("#question", "Enter")
    playwright.expect(shifted_page.locator("#search .status")).to_contain_text("10 passages")
    assert fits(shifted_page)
