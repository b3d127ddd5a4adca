"""The report of a file as rows of words, for a table."""

from __future__ import annotations

from interlingua.corpus.inspection.counts import Quantiles
from interlingua.corpus.inspection.files import FileLook, SideLook, languages_in_words, side_names


def look_rows(found: FileLook) -> list[tuple[str, str]]:
    """Return the contents of a file as rows of a name and a value."""
    if found.error:
        return [("unreadable", found.error)]
    rows = [("format", f"{found.kind}, {found.format}, {found.encoding}")]
    if found.columns:
        rows.append(("further columns", ", ".join(found.columns)))
    rows += _language_rows(found)
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in found.left_out.items())
    count = f"{found.units:,}"
    if left_out:
        count = f"{count} (left out: {left_out})"
    rows.append((found.kind, count))
    # A file of texts has neither pairs nor copies.
    if found.kind == "pairs":
        rows.append(("duplicates", f"{found.duplicates:,} pairs, {_per_side(found, 'duplicates')}"))
        rows.append(("copies", f"{found.copies:,}"))
    else:
        rows.append(("duplicates", _per_side(found, "duplicates")))
    rows.append(("empty", _per_side(found, "empty")))
    for name, side in zip(side_names(found.sides), found.sides, strict=True):
        if side.characters is not None:
            rows.append((f"{name} characters", _spread(side.characters)))
    if found.ratio is not None:
        rows.append(("target / source", _spread(found.ratio)))
    orders = _orders(found)
    rows.append(("sorted", ", ".join(orders) or "no"))
    return rows


def _language_rows(found: FileLook) -> list[tuple[str, str]]:
    # The list is ordered by frequency; the full one is in the JSON.
    if found.language_pairs:
        shown = [f"{codes} {count:,}" for codes, count in list(found.language_pairs.items())[:5]]
        if len(found.language_pairs) > len(shown):
            shown.append(f"and {len(found.language_pairs) - len(shown)} more")
        return [("languages", ", ".join(shown))]
    rows = []
    for name, side in zip(side_names(found.sides), found.sides, strict=True):
        rows.append((name, f"{languages_in_words(side)}; {_scripts(side)}"))
    return rows


def _scripts(side: SideLook) -> str:
    """Return the scripts with at least a hundredth of the letters."""
    shares = [f"{name} {share:.0%}" for name, share in side.scripts.items() if share >= 0.01]
    return ", ".join(shares) or "no letters"


def _per_side(found: FileLook, count: str) -> str:
    counts = [
        f"{getattr(side, count):,} {name}s"
        for name, side in zip(side_names(found.sides), found.sides, strict=True)
    ]
    return ", ".join(counts)


def _spread(found: Quantiles) -> str:
    return f"{found.median:g}; 90 % from {found.low:g} to {found.high:g}; at most {found.most:g}"


def _orders(found: FileLook) -> list[str]:
    orders = []
    for name, side in zip(side_names(found.sides), found.sides, strict=True):
        if side.sorted_by_length:
            orders.append(f"by length of the {name}, {side.sorted_by_length}")
        if side.sorted_by_alphabet:
            orders.append(f"by alphabet of the {name}, {side.sorted_by_alphabet}")
    if found.sorted_by_score:
        orders.append(f"by score, {found.sorted_by_score}")
    return orders
