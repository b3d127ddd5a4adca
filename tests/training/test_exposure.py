from interlingua.training.exposure import _MOST_ROWS, exposure_lines


def test_a_line_for_each_largest_first():
    lines = list(
        exposure_lines(
            {"rus_Cyrl-eng_Latn": 1000, "deu_Latn-eng_Latn": 3000}, {"deu_Latn-eng_Latn": 12_000}
        )
    )
    assert [line.split() for line in lines] == [
        ["language", "pair", "pairs", "seen", "share", "passes"],
        ["deu_Latn-eng_Latn", "12,000", "3,000", "75.0%", "0.25"],
        ["rus_Cyrl-eng_Latn", "0", "1,000", "25.0%"],
    ]
    assert lines[0].index("share") + 5 == lines[1].index("%") + 1


def test_many_are_a_few_lines_that_sum_up():
    seen = {f"l{number:02d}": 100 - number for number in range(82)}
    lines = list(exposure_lines(seen, dict.fromkeys(seen, 10), heading="planned"))
    assert len(lines) == _MOST_ROWS + 1
    assert "planned" in lines[0]
    rows = [line.split() for line in lines[1:]]
    assert [row[0] for row in rows][:2] == ["l00", "l01"]
    assert [row[0] for row in rows][-2:] == ["l80", "l81"]
    others = rows[-3]
    assert others[:2] == ["71", "others"]
    assert sum(int(row[-3].replace(",", "")) for row in rows) == sum(seen.values())
    assert others[-4] == "710"


def test_nothing_seen_is_no_table():
    assert list(exposure_lines({"a-b": 0}, {"a-b": 3})) == []
