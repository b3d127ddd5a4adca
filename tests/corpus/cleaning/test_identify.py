import sys

import pytest

from interlingua.corpus.cleaning.identify import LanguageCheck
from interlingua.errors import MissingExtraError


@pytest.fixture(scope="module")
def check():
    pytest.importorskip("py3langid")
    return LanguageCheck(0.8)


GERMAN = "Der Ausschuss trifft sich am Donnerstag wieder, um das neue Gebäude zu besprechen."


@pytest.mark.parametrize(
    ("text", "language", "wrong"),
    [
        (GERMAN, "deu_Latn", False),
        (GERMAN, "de", False),
        (GERMAN, "fra_Latn", True),
        (GERMAN, "eng_Latn", True),
        (GERMAN, "nld_Latn", False),  # a close relative
        (GERMAN, "sat_Olck", False),  # not known to the identifier
        (GERMAN, "arb_Latn", False),  # known in another script only
        ("Это предложение написано на русском языке.", "ukr_Cyrl", False),
        ("Это предложение написано на русском языке.", "ell_Grek", True),
        ("Komiteen møtes igjen på torsdag for å diskutere bygget.", "nob_Latn", False),
        ("今天的天气非常好，我们去公园吧。", "zho_Hant", False),
    ],
)
def test_wrong_is_what_is_clearly_something_else(check, text, language, wrong):
    assert check.is_wrong(text, language) is wrong


def test_without_py3langid_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[langid\]"):
        LanguageCheck(0.8)
