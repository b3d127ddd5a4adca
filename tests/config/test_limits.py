"""No option's range changes unnoticed: ``limits.json`` holds the ends of each."""

from __future__ import annotations

import json
from pathlib import Path

from tests.config.limits import accepts, sorted_options

FROZEN = json.loads(Path(__file__).with_name("limits.json").read_text(encoding="utf-8"))


def test_every_option_takes_its_smallest_and_its_largest_number_and_not_the_next_ones():
    wrong = []
    names = []
    for key, build, name, kind, is_pair, besides in sorted_options():
        names.append(key)
        limits = FROZEN.get(key)
        if limits is None:
            wrong.append(f"{key}: not in the table; run python -m tests.config.limits")
            continue
        for value, expected in zip(limits, (False, True, True, False), strict=True):
            if value is None:
                continue
            number = kind(value)
            if accepts(build, name, number, is_pair, besides) != expected:
                wrong.append(f"{key}: {number} is {'refused' if expected else 'accepted'}")
    assert wrong == []
    assert sorted(FROZEN) == names
