"""``interlingua.align`` and ``interlingua align`` find the same links."""

from __future__ import annotations

import pytest

import interlingua
from interlingua.alignment.align import read_links
from interlingua.errors import ConfigError, DataError
from tests.alignment.test_align import documents
from tests.mining.invented import write_lines
from tests.mining.words import embed


@pytest.fixture
def sides(tmp_path):
    source, target, _ = documents(1, 30)
    write_lines(tmp_path / "a.de", source)
    write_lines(tmp_path / "a.en", target)
    return source, target


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ("", {}),
        ("--max-sentences 2 --skip-quantile 0.4", {"max_sentences": 2, "skip_quantile": 0.4}),
    ],
)
def test_function_and_command_line_find_equal_links(done, tmp_path, sides, flags, options):
    files = [str(tmp_path / name) for name in ("a.de", "a.en")]
    output = str(tmp_path / "links")
    done("align tests.mining.words:embed", *files, f"--backend function -o {output}", flags)
    expected = list(read_links(output))
    from_files = interlingua.align(
        "tests.mining.words:embed", *files, backend="function", **options
    )
    assert list(from_files) == expected
    from_lists = interlingua.align(embed, *sides, **options)
    assert [link[:2] for link in from_lists] == [link[:2] for link in expected]
    assert [link.cost for link in from_lists] == pytest.approx(
        [link.cost for link in expected], abs=1e-6
    )
    assert str(from_lists.report) == str(from_files.report)


def test_written_links_do_not_come_back(tmp_path, sides):
    found = interlingua.align(
        embed, tmp_path / "a.de", tmp_path / "a.en", output=tmp_path / "links"
    )
    assert found == []
    assert read_links(str(tmp_path / "links"))


@pytest.mark.parametrize("option", ["output", "texts", "gold", "source_column"])
def test_lists_take_no_option_of_files(sides, option):
    with pytest.raises(ConfigError, match=option):
        interlingua.align(embed, *sides, **{option: "x"})


def test_one_document_is_too_few(sides):
    with pytest.raises((ConfigError, DataError), match=r"target|document"):
        interlingua.align(embed, sides[0])
