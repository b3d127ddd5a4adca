from __future__ import annotations

import numpy as np
import pytest

from interlingua.config.registry import CHECKS
from interlingua.errors import ConfigError
from interlingua.mining.checks import (
    Check,
    Checker,
    CheckPlan,
    EmptySide,
    Pairs,
    copied_share,
    empty_ratios,
    find_check,
    hubs_of,
    length_ratios,
    number_agreement,
    numbers,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("am 12.05.2020", ["12", "5", "2020"]),
        ("1.234.567,50 €", ["1234567", "50"]),
        ("1,000 and 1 000 and 1\u202f000 and 1'000", ["1000"] * 4),
        ("12345,678", ["12345", "678"]),
        ("٣٤ ४२ ๗ ５", ["34", "42", "7", "5"]),
        ("007 / 000", ["7", "0"]),
        ("v2.10", ["2", "10"]),
        ("1,2345", ["1", "2345"]),
        ("12,34,567 and १,००,०००", ["1234567", "100000"]),
        ("3万 and 2.5億", ["30000", "250000000"]),
        ("1万2000", ["1", "2000"]),
    ],
)
def test_numbers_in_any_digits(text, found):
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("source", "target", "share"),
    [
        ("keine", "none", 1.0),
        ("im Jahr 1999", "in the year 1999", 1.0),
        ("im Jahr 1999", "in the year 1998", 0.0),
        ("3,5 Millionen, 1.000", "3.5 million, 1,000", 1.0),
        ("١٩٩٩", "1999", 1.0),
        ("2 und 2", "2", 0.5),
        ("nichts", "7", 0.5),  # the other side may have it in words
        ("3.5", "12", 0.0),
        ("2024-01-02", "2024-01-03", 0.0),  # nothing but numbers
        ("2024-01-02", "02/01/2024", 1.0),
        ("10.1.3.5", "10.1.3.6", 0.0),
        ("am 02.01.2024", "on 2024-01-03", 0.5),
    ],
)
def test_numbers_agree(source, target, share):
    assert number_agreement(source, target) == pytest.approx(share)


@pytest.mark.parametrize(
    ("source", "target", "share"),
    [
        ("Hello!", "hello!", 1.0),
        ("die Apache Software Foundation", "the Apache Software Foundation", 0.75),
        ("ganz anders gesagt heute", "said in another way", 0.0),
        ("ja Berlin", "yes Berlin", 0.0),  # too few words to decide
        ("12", "12", 0.0),  # a number is its own translation
        ("Punkt 12", "punkt 12", 1.0),
    ],
)
def test_copied_words(source, target, share):
    assert copied_share(source, target) == pytest.approx(share)


@pytest.mark.parametrize(
    ("source", "target", "is_empty"),
    [
        ("Guten Morgen", "-", True),
        ("Guten Morgen", "1", True),
        ("...", "–", True),
        ("Das hier ist ein ganzer Satz.", "OK", True),
        ("Ja", "Yes", False),
        ("12", "12", False),
        ("はい", "Yes, of course", False),
        ("", "", True),
    ],
)
def test_nearly_empty_sides(source, target, is_empty):
    assert (empty_ratios([source], [target])[0] >= EmptySide.default_limit) == is_empty


def test_lengths_by_hand():
    """Add 15 letters to either side.

    A Chinese character is worth 3 Latin letters, a sign 1.
    """
    ratios = length_ratios(["aaaaa", "中國", ""], ["a" * 25, "abcdef", "a" * 15])
    assert ratios.tolist() == pytest.approx([40 / 20, 1.0, 2.0])


def checker_of(folder, columns, rejecting, language="deu_Latn"):
    return Checker(CheckPlan.parse(columns, rejecting), (language, "eng_Latn"), folder)


def checked(tmp_path, columns, rejecting, sources, targets, hubs=None, *, language="zho_Hans"):
    checker = checker_of(tmp_path, columns, rejecting, language)
    values = checker.measure(Pairs(sources, targets, np.array(hubs or [1] * len(sources))))
    return values, checker.rejected(values)


def test_scripts_by_hand(tmp_path):
    """Use 6 Chinese and 4 Latin letters' worth in the second source.

    A text without letters is in every script.
    """
    sources, targets = ["中國", "中國 abcd", "2.2.", "ab", ""], ["ab", "ab", "2.2.", "3 %", "中"]
    values, rejected = checked(tmp_path, "script", "script=0.7", sources, targets)
    assert values["script"].tolist() == pytest.approx([1.0, 0.6, 1.0, 0.0, 0.0])
    assert rejected["wrong script"].tolist() == [False, True, False, True, True]


def test_duplicates_of_better_pairs(tmp_path):
    checker = checker_of(tmp_path, "duplicate", "duplicate")
    first = checker.measure(Pairs(["Ja.", "Nein."], ["Yes.", "No."], np.ones(2)))
    assert first["duplicate"].tolist() == [0, 0]
    again = checker.measure(Pairs(["ja!", "Ja", "nein"], ["YES", "Never", "never?"], np.ones(3)))
    assert again["duplicate"].tolist() == [2, 1, 2]
    assert checker.rejected(again)["duplicate"].tolist() == [True, False, True]


def test_what_is_rejected_makes_nothing_a_duplicate(tmp_path):
    """Reject the first pair by length: the second is no duplicate of it, the third is one."""
    targets = ["Yes, of course, as I have said before.", "yes", "yes!"]
    rejecting = "length=2,duplicate=1"
    values, rejected = checked(tmp_path, "duplicate", rejecting, ["Ja.", "ja", "JA"], targets)
    assert values["duplicate"].tolist() == [0, 0, 2]
    assert rejected["duplicate"].tolist() == [False, False, True]


def test_pairs_refused_for_what_they_are(tmp_path):
    """Check that hubs and duplicates depend on other pairs, and optional checks refuse none."""
    checker = checker_of(tmp_path, "numbers", "length=2,copied,duplicate=1,hub=1")
    sources, targets = ["Ja 1", "ja 1", "Ja 1", "Seite"], ["Yes 2", "Yes 2", "x" * 40, "seite"]
    assert checker.refuses(sources, targets).tolist() == [False, False, True, True]
    assert not checker_of(tmp_path, "length,copied", "").refuses(sources, targets).any()


def test_hubs_of_a_short_side_are_counted_as_if_both_were_as_long():
    """Use 10 texts against 200, each the nearest of 20 by equal shares."""
    x, y = np.array([20, 80, 0]), np.array([1, 3, 5])
    assert hubs_of(x, y, 10, 200).tolist() == [1, 4, 5]
    assert hubs_of(y, x, 200, 10).tolist() == [1, 4, 5]
    assert hubs_of(x, y, 10, 10).tolist() == [20, 80, 5]


def test_hubs_and_numbers_have_limits(tmp_path):
    texts = ["a 1", "b", "c 2"], ["a 1", "b", "c 3"]
    values, rejected = checked(tmp_path, "hub", "hub=3,numbers=1", *texts, [2, 3, 4])
    assert list(values) == ["numbers", "hub"]
    assert rejected["hub"].tolist() == [False, True, True]
    assert rejected["numbers differ"].tolist() == [False, False, True]


def test_languages(tmp_path):
    pytest.importorskip("py3langid")
    english = "This is a sentence that is clearly written in English."
    german = "Das ist ein Satz, der ganz offensichtlich auf Deutsch geschrieben ist."
    texts = [german, english, "kurz"], [english, german, "short"]
    values, rejected = checked(tmp_path, "", "language", *texts, language="deu_Latn")
    assert values["language"].tolist() == [0, 2, 0]
    assert rejected["another language"].tolist() == [False, True, False]


def test_a_plan_from_the_command_line():
    plan = CheckPlan.parse("hub, length", "copied=0.5,length")
    limits = {"copied": 0.5, "length": find_check("length").default_limit}
    asked = ("length", "hub")
    assert plan == CheckPlan(("length", "copied", "hub"), limits, requested=asked)
    assert CheckPlan.parse("", "none") == CheckPlan((), {})
    # A glossary needs a file.
    assert CheckPlan.parse("all", "").columns == tuple(CHECKS)[:-1]
    with pytest.raises(ConfigError, match=r"check 'lenght'; .*'length'"):
        CheckPlan.parse("lenght", "")
    for limit in ("nan", "x"):
        with pytest.raises(ConfigError, match=f"limit of 'length': .*'{limit}'"):
            CheckPlan.parse("", f"length={limit}")


def test_no_pairs_at_all(tmp_path):
    columns = "script,length,copied,numbers,duplicate,hub"
    values, rejected = checked(tmp_path, columns, "length", [], [])
    assert all(len(column) == 0 for column in [*values.values(), *rejected.values()])


class Politeness(Check):
    """A check of a package outside of this repository."""

    name = "politeness"
    measures = "signs of exclamation on both sides"
    reason = "impolite"
    default_limit = 2

    def score(self, pairs):
        both = zip(pairs.sources, pairs.targets, strict=True)
        return np.array([(a + b).count("!") for a, b in both], float)


OUTSIDE = f"{__name__}:Politeness"


def test_a_check_of_another_package_is_named_by_its_place(tmp_path):
    checked = "length", f"{OUTSIDE}=3,copied"
    assert CheckPlan.parse(*checked).names == ("length", "copied", "politeness")
    checker = checker_of(tmp_path, *checked)
    values = checker.measure(Pairs(["Halt!", "Halt!!"], ["Stop!", "Stop!"], np.ones(2)))
    assert values["politeness"].tolist() == [2, 3]
    assert checker.rejected(values)["impolite"].tolist() == [False, True]
    assert checker.refuses(["Halt!!"], ["Stop!"]).tolist() == [True]


@pytest.mark.parametrize(
    "name", ["no.such:Check", "math:pi", "interlingua.errors:ConfigError", "nothing:", ":x"]
)
def test_places_without_a_check_are_refused(name):
    with pytest.raises(ConfigError, match=r"check|imported|package.module:Class"):
        CheckPlan.parse(name, "")


def test_each_side_of_a_limit():
    """Check that a value at an upper limit is rejected, and one at a lower limit accepted.

    What is no number is accepted.
    """
    values = np.array([1.0, 2.0, 3.0, np.nan])
    assert Politeness(("", ""), None).accept(values).tolist() == [True, False, False, True]
    script = find_check("script")(("", ""), None, 2.0)
    assert script.accept(values).tolist() == [False, True, True, True]
