"""The site without mkdocs: every page is in its navigation, no relative link is dead, the API's
names exist."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from interlingua.config.registry import ANALYSES, BACKENDS, CHECKS, FORMATS, METHODS, TASKS
from interlingua.errors import MissingExtraError
from tools.site_hooks import (
    TOP_LEVEL,
    api_modules,
    from_top,
    on_page_content,
    on_post_template,
    with_site_links,
)

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")


def pages_of(nav):
    """Return the pages of a navigation, from all its levels."""
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [page for entry in entries for page in pages_of(entry)]


def anchors(page):
    """Return the names by which a heading can be linked."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def test_every_page_is_in_the_navigation_once():
    written = [str(page.relative_to(DOCS)) for page in PAGES]
    assert sorted(pages_of(CONFIG["nav"])) == sorted([*written, *TOP_LEVEL])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_no_relative_link_is_dead(page):
    dead = []
    for target, anchor in LINK.findall(
        re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    ):
        path = page.parent / target if target else page
        is_missing = not path.exists()
        if is_missing or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            dead.append(f"{target}#{anchor}")
    assert dead == []


@pytest.mark.parametrize("name", sorted(api_modules()))
def test_names_of_the_api_pages_exist(name):
    module, _, attribute = name.rpartition(".")
    try:
        found = importlib.import_module(
            name if importlib.util.find_spec(module).submodule_search_locations else module
        )
    except MissingExtraError as error:
        pytest.skip(str(error))
    if found.__name__ != name:
        found = getattr(found, attribute)
    assert found.__doc__


@pytest.mark.parametrize(
    "registry", [METHODS, TASKS, BACKENDS, ANALYSES, FORMATS, CHECKS], ids=lambda each: each.kind
)
def test_the_api_shows_what_plug_ins_are_made_after(registry):
    module = registry.base.partition(":")[0]
    assert {module, registry.base.replace(":", ".")} & set(api_modules())


def test_the_site_needs_no_other_server():
    assert CONFIG["theme"]["font"] is False
    assert "offline" not in CONFIG["plugins"]  # it loads a script of a content network
    assert "extra_javascript" not in CONFIG
    assert CONFIG["extra_css"] == ["site.css"]
    sheet = (DOCS / "site.css").read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import|//", sheet)


@pytest.mark.parametrize(("page", "name"), sorted(TOP_LEVEL.items()))
def test_links_of_the_repositorys_top_lead_to_pages_or_become_text(page, name):
    on_the_site = with_site_links(from_top((ROOT / name).read_text(encoding="utf-8")), page)
    targets = [target for target, _ in LINK.findall(on_the_site) if target]
    shown = {
        *pages_of(CONFIG["nav"]),
        *(str(picture.relative_to(DOCS)) for picture in DOCS.rglob("*.svg")),
    }
    assert [target for target in targets if target not in shown] == []


def test_the_page_for_a_wrong_address_leads_to_the_first_page():
    theme = '<a href="/index.html" title="x" class="md-header__button md-logo"></a>'
    theme += "<h1>404 - Not found</h1>"
    page = on_post_template(theme, template_name="404.html")
    assert page.count('href="/index.html"') == 2
    assert "404 -" not in page
    assert on_post_template(theme, template_name="sitemap.xml") == theme


def code_lines(*lines):
    return "".join(
        f'<span id="__span-0-{number}">{line}\n</span>' for number, line in enumerate(lines, 1)
    )


def test_only_lines_with_a_dollar_and_those_of_loops_are_commands():
    read = code_lines(
        '<span class="gp">$ </span>cat<span class="w"> </span>a.md',
        '<span class="gp"># </span><span class="nb">The</span> castle',
        '<span class="gp">$ </span><span class="k">for</span> n <span class="k">in</span> 1 \\',
        '    2; <span class="k">do</span>',
        '<span class="gp">  $</span>run $n',
        '<span class="go">  done</span>',
        '<span class="go">1</span>',
    )
    assert on_page_content(read) == code_lines(
        '<span class="gp">$ </span>cat<span class="w"> </span>a.md',
        '<span class="go"># The castle</span>',
        '<span class="gp">$ </span><span class="k">for</span> n <span class="k">in</span> 1 \\',
        '    2; <span class="k">do</span>',
        "<span>  $</span>run $n",
        "<span>  done</span>",
        '<span class="go">1</span>',
    )
