"""tools/release.py: what a tag and a folder of distributions must have."""

from __future__ import annotations

import pytest

from tools import release

VERSION = '__version__ = "1.2.3"\n'


@pytest.fixture
def project(tmp_path):
    """A project with a version and a changelog."""
    source = tmp_path / release.SOURCE
    source.parent.mkdir(parents=True)
    source.write_text(VERSION, encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-12-01)\n")
    return tmp_path


def test_the_tag_of_a_version_with_a_date_is_right(project):
    assert release.check_tag("v1.2.3", project) is None


@pytest.mark.parametrize(
    ("tag", "changelog", "problem"),
    [
        ("1.2.3", "## 1.2.3 (2026-12-01)", "expected v1.2.3"),
        ("v1.2.4", "## 1.2.3 (2026-12-01)", "expected v1.2.3"),
        ("v1.2.3", "## 1.2.3 (unreleased)", "CHANGELOG.md"),
        ("v1.2.3", "## Unreleased\n\n## 1.2.3 (2026-12-01)", "'## Unreleased'"),
        ("v1.2.3", "", "missing"),
    ],
)
def test_another_tag_or_an_undated_changelog_is_refused(project, tag, changelog, problem):
    (project / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    assert problem in release.check_tag(tag, project)


def make_files(folder):
    for name in release.DISTRIBUTIONS:
        for ending in (".tar.gz", "-py3-none-any.whl"):
            (folder / f"{name}-1.2.3{ending}").write_text("")


def test_all_files_are_found(tmp_path):
    make_files(tmp_path)
    (tmp_path / "interlingua-1.2.3-py3-none-linux_x86_64.whl").write_text("")
    (tmp_path / "interlingua-1.2.2.tar.gz").write_text("")
    assert len(release.find_files(tmp_path, "1.2.3")) == 7


def test_a_missing_file_is_named(tmp_path):
    make_files(tmp_path)
    (tmp_path / "interlingua_mini-1.2.3.tar.gz").unlink()
    with pytest.raises(SystemExit, match=r"interlingua_mini-1\.2\.3\.tar\.gz"):
        release.find_files(tmp_path, "1.2.3")


def test_a_file_above_the_limit_is_refused(tmp_path, monkeypatch):
    make_files(tmp_path)
    monkeypatch.setattr(release, "read_version", lambda: "1.2.3")
    monkeypatch.setattr(release, "MAX_BYTES", -1)
    with pytest.raises(SystemExit, match="interlingua-1"):
        release.check_files(tmp_path)


def test_a_command_that_fails_ends_the_program():
    with pytest.raises(SystemExit, match="status 1"):
        release.run([release.sys.executable, "-c", "raise SystemExit(1)"])


def test_the_version_of_the_project_is_found():
    assert release.check_tag(f"v{release.read_version()}-x").startswith("the tag")
