from __future__ import annotations

from interlingua.evaluation.report.grouping import group_columns, sections
from interlingua.evaluation.report.wrong_neighbors import wrong_items
from tests.evaluation.page_made import make


def items_of(*results, **options):
    return wrong_items(
        list(sections(results, group_columns(results, by_settings=False))), **options
    )


def test_models_stand_side_by_side():
    weak, strong = make("weak", 0.5), make("strong", 0.9, seed=1)
    found = {(item["subset"], item["item"]): item for item in items_of(weak, strong)}
    for result, column in ((weak, 0), (strong, 1)):
        for subset, examples in result.examples.items():
            for one in examples:
                entry = next(f for f in found[subset, one.item]["found"] if f["model"] == column)
                assert entry == {
                    "model": column,
                    "text": one.retrieved,
                    "language": "eng_Latn",
                    "score": 0.75,
                    "expected": 0.5,
                }
    for (subset, item), entry in found.items():
        wrong = {one["model"] for one in entry["found"]}
        for column, result in enumerate((weak, strong)):
            right = result.items[subset].values[item] == 1
            assert (column in entry["right"]) == right
            assert not (right and column in wrong)
        assert (entry["task"], entry["query"], entry["measure"]) == (0, f"query {item}", "cosine")


def test_queries_of_other_data_are_other_queries():
    one, other = make("a", 0.5), make("b", 0.5, query="another {item}")
    assert all(len(item["found"]) == 1 for item in items_of(one, other))
    assert all(len(item["found"]) == 2 for item in items_of(one, make("b", 0.5)))


def test_error_rates_are_right_at_zero():
    errors = make("a", 0.5, higher_is_better=False, items={})
    assert all(item["right"] == [] for item in items_of(errors))  # no items, so it is unknown
    lower = make("b", 0.5, higher_is_better=False)
    found = items_of(make("a", 0.2, higher_is_better=False, seed=3), lower)
    for item in found:
        assert (1 in item["right"]) == (
            lower.items[item["subset"]].values[item["item"]] == 0
            and all(one["model"] != 1 for one in item["found"])
        )


def test_the_page_is_bounded_and_every_language_has_its_share():
    found = items_of(make("a", 0.5), make("a", 0.5, task="xsim"), most=12)
    assert len(found) == 12
    shares = {(item["task"], item["subset"]) for item in found}
    assert len(shares) == 6
    for share in shares:
        assert sum((item["task"], item["subset"]) == share for item in found) == 2
    assert [item["task"] for item in found] == [0, 1] * 6
    assert len({(item["task"], item["subset"]) for item in found[:6]}) == 6


def test_queries_stand_in_the_order_in_which_they_were_kept():
    one, other = make("a", 0.5), make("b", 0.5, seed=1)
    (subset, *_) = one.examples
    found = [item["item"] for item in items_of(one, other) if item["subset"] == subset]
    kept = [[example.item for example in result.examples[subset]] for result in (one, other)]
    assert set(found) == {item for items in kept for item in items}
    assert found[0] in (kept[0][0], kept[1][0])
    places = [min(items.index(item) for items in kept if item in items) for item in found]
    assert places == sorted(places)


def test_nothing_kept_nothing_shown():
    assert items_of(make("a", 0.5, examples={})) == []
