"""tools/oldest_versions.py: the lower bounds of pyproject.toml as constraints."""

from __future__ import annotations

import pytest

from tools.oldest_versions import HEADER, TARGET, main, render_oldest

PYPROJECT = """
[project]
dependencies = ["torch>=2.7", "numpy>=1.26"]

[project.optional-dependencies]
search = ["pyarrow>=19"]
parquet = ["pyarrow>=19"]
serve = ["uvloop>=0.21; sys_platform != 'win32'", "ray[client]>=2.40"]
mteb = ["mteb>=2.26,<3"]
all = ["interlingua[search]"]
dev = ["ruff"]
"""


def test_lower_bounds_are_sorted_and_keep_their_markers():
    assert render_oldest(PYPROJECT) == HEADER + (
        "mteb==2.26\nnumpy==1.26\npyarrow==19\nray==2.40\ntorch==2.7\n"
        "uvloop==0.21; sys_platform != 'win32'\n"
    )


@pytest.mark.parametrize(
    ("requirement", "error"),
    [("numpy", "numpy"), ("torch>=2.8", "torch"), ("torch>=2.7; python_version < '3'", "torch")],
)
def test_a_requirement_without_one_lower_bound_is_refused(requirement, error):
    text = PYPROJECT.replace('"pyarrow>=19"', f'"{requirement}"', 1)
    with pytest.raises(ValueError, match=error):
        render_oldest(text)


def test_the_file_is_written(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    assert main(tmp_path) == 0
    assert (tmp_path / TARGET).read_text(encoding="utf-8") == render_oldest(PYPROJECT)
