"""Pages for mkdocs: README, CHANGELOG and CONTRIBUTING join; links to code lead to the API.

The pages are read in the repository as well, where a link may lead to a source file. The site has
no source files: such a link leads to the module on an API page if one shows it, and else it becomes
plain text.
"""

from __future__ import annotations

import os.path
import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TOP_LEVEL = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}
"""Page of the site -> file at the top of the repository."""
TAB = "\ue000"
"""Represents a tab while a page is converted: a character for private use."""
CODE_LINE = re.compile(r'(<span id="__span-\d+-(\d+)">)(.*)')
"""A line of a block of code: its beginning, its number in the block, and the rest."""
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are written at the top of the repository; called by mkdocs."""
    from mkdocs.structure.files import File

    for page, name in TOP_LEVEL.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=from_top(text)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point the links of a page to what the site has; called by mkdocs."""
    if page.file.src_uri == "index.md":
        # The home page has no neighbors in the navigation; its code needs the width.
        page.meta["hide"] = ["navigation"]
    # Markdown would write tabs as spaces, so that a copied table has no columns.
    return with_site_links(markdown, page.file.src_uri).replace("\t", TAB)


def on_page_content(html: str, **_: Any) -> str:
    """Mark what is a command and what is output in the console blocks of a page; called by mkdocs.

    Pygments takes lines that begin with ``#`` or ``%`` for commands, and those of a loop for
    output. Commands of our pages begin with ``$``.
    """
    loops = 0
    is_continued = False

    def marked(line: re.Match[str]) -> str:
        nonlocal loops, is_continued
        start, number, code = line.groups()
        if number == "1":
            loops, is_continued = 0, False
        text = re.sub(r"<[^>]*>", "", code)
        is_command = is_continued or text.startswith("$ ")
        is_continued = is_command and text.endswith("\\")
        if loops and not is_command:
            code = re.sub(r' class="g[op]"', "", code)
        elif not is_command and 'class="gp"' in code:
            code = f'<span class="go">{text}</span>'
        if loops or is_command:
            loops += bool(re.search(r"\bdo$", text)) - bool(re.match(r" *done\b", text))
        return start + code

    return CODE_LINE.sub(marked, html).replace(TAB, "\t")


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """Add the way to the first page to the page for a wrong address; called by mkdocs."""
    if template_name != "404.html":
        return output_content
    home = re.search(r'<a href="([^"]*)"[^>]* class="md-header__button md-logo"', output_content)
    assert home is not None, "the theme's page for a wrong address has no link to the first page"
    text = (
        f'<p>There is no page at this address. Go to the <a href="{home[1]}">first page</a>, or'
        " search for the subject in the field above.</p>"
    )
    return output_content.replace("<h1>404 - Not found</h1>", f"<h1>Page not found</h1>{text}")


def from_top(text: str) -> str:
    """Return a page of the repository's top, with paths from within docs/."""

    def from_docs(link: re.Match[str]) -> str:
        return link.group(1) + os.path.relpath(ROOT / link.group(2), DOCS)

    return re.sub(r"(\]\()([^)#:\s]+)(?=[)#])", from_docs, text)


def with_site_links(markdown: str, page: str) -> str:
    """Replace each link in a text that leaves docs/.

    Args:
        markdown: of the page.
        page: its path below docs/.
    """
    folder = PurePosixPath(page).parent

    def replaced(link: re.Match[str]) -> str:
        text, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        path = os.path.normpath(DOCS / folder / target)
        name = os.path.relpath(path, ROOT)
        for site_page, top_level in TOP_LEVEL.items():
            if name == top_level:
                return f"[{text}]({os.path.relpath(site_page, folder)}{anchor})"
        if Path(path).is_relative_to(DOCS):
            return link.group(0)
        module = name.removesuffix(".py").removeprefix("src/").replace("/", ".")
        if module in api_modules():
            return f"[{text}]({os.path.relpath(api_modules()[module], folder)}#{module})"
        return text

    return LINK.sub(replaced, markdown)


@cache
def api_modules() -> dict[str, str]:
    """Map the modules that API pages show to the page."""
    found = {}
    for path in sorted((DOCS / "api").glob("*.md")):
        for module in re.findall(r"^::: (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            found[module] = f"api/{path.name}"
    return found
