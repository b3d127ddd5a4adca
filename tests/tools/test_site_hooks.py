"""tools/site_hooks.py: links that leave docs/ lead to what the site has."""

from __future__ import annotations

import pytest

from tools import site_hooks


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../results.md#x)", "[a](../results.md#x)"),
        (
            "[a](../../src/interlingua/methods/tlm.py)",
            "[a](../api/methods.md#interlingua.methods.tlm)",
        ),
        ("[`a`](../../src/interlingua/no_api_page.py)", "`a`"),
        ("[a](../../CONTRIBUTING.md)", "[a](../contributing.md)"),
        ("[a](../../README.md#try-it)", "[a](../index.md#try-it)"),
        ("![a](../mixed-pool.svg)", "![a](../mixed-pool.svg)"),
        ("[a](https://example.org/b)", "[a](https://example.org/b)"),
    ],
)
def test_links_of_a_page(link, expected):
    assert site_hooks.with_site_links(link, "methods/tlm.md") == expected


def test_the_readme_becomes_the_first_page():
    text = site_hooks.from_top(
        "[a](docs/results.md) ![b](docs/b.svg) [c](examples/debias.py) [d](CHANGELOG.md)"
    )
    assert (
        site_hooks.with_site_links(text, "index.md")
        == "[a](results.md) ![b](b.svg) c [d](changelog.md)"
    )
