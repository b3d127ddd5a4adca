""".github and the Makefile: jobs run what CI runs, and forms ask for what the pages name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.tiers import MARKERS

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((GITHUB / "workflows").glob("*.yml"))
}
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):(?!=)", MAKEFILE, re.M))
SHA_OR_MAJOR = re.compile(r"[\w.-]+/[\w.-]+@(v\d+|release/v\d+)|\./\.github/workflows/[\w-]+\.yml")


def matrix_of(job):
    return job.get("strategy", {}).get("matrix", {})


def made(workflow):
    """Return the targets that the jobs of a workflow make."""
    found = set()
    for job in WORKFLOWS[workflow]["jobs"].values():
        for step in job.get("steps", ()):
            for target in re.findall(r"\bmake (\S+(?: \S+ \}\})?)", step.get("run", "")):
                expression = re.search(r"\$\{\{ matrix\.(\w+) \}\}", target)
                if expression is None:
                    found.add(target)
                    continue
                for value in matrix_of(job)[expression[1]]:
                    found.add(target.replace(expression[0], value))
    return found


def run_by_ci():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    return set(re.findall(r"^make (\S+)", script, re.M))


def test_each_target_exists():
    for workflow in WORKFLOWS:
        markers = {f"test-{name}" for name in MARKERS}
        assert made(workflow) <= TARGETS | markers, workflow
    assert run_by_ci() <= TARGETS


def test_the_jobs_of_tests_run_each_marker_and_all_that_ci_runs():
    targets = made("tests")
    markers = {f"test-{name}" for name in MARKERS}
    assert markers <= targets
    # Markers are the jobs of `make test` and `make test-rest`; docs has a workflow of its own.
    assert run_by_ci() - {"test", "test-rest", "docs"} <= targets
    assert "docs" in made("docs")


def test_a_marker_is_a_target_that_no_other_target_hides():
    assert "\ntest-%:" in MAKEFILE
    assert not TARGETS & {f"test-{name}" for name in MARKERS}


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_actions_are_pinned_to_a_major_version_and_jobs_have_a_limit(workflow):
    for name, job in WORKFLOWS[workflow]["jobs"].items():
        used = [step["uses"] for step in job.get("steps", ()) if "uses" in step]
        for action in [*used, *filter(None, [job.get("uses")])]:
            assert SHA_OR_MAJOR.fullmatch(action), action
        assert "uses" in job or 0 < job["timeout-minutes"] <= 90, name


def test_only_the_job_that_publishes_may_ask_for_a_token_of_pypi():
    jobs = WORKFLOWS["release"]["jobs"]
    asking = [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})]
    assert asking == ["publish"]
    assert set(jobs["publish"]["needs"]) == {"tests", "distributions"}
    assert WORKFLOWS["release"]["permissions"] == {"contents": "read"}


def test_wheels_are_built_for_the_systems_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = {name.partition("-")[2] for name in project["tool"]["cibuildwheel"]["build"]}
    assert kinds == {"manylinux_x86_64", "manylinux_aarch64", "macosx_arm64"}
    systems = matrix_of(WORKFLOWS["distributions"]["jobs"]["wheels"])["system"]
    assert len(systems) == len(kinds)


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_has_required_fields_with_ids(form):
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    fields = [one for one in content["body"] if one["type"] != "markdown"]
    ids = [one["id"] for one in fields]
    assert len(set(ids)) == len(ids)
    assert any(one.get("validations", {}).get("required") for one in fields)


def test_forms_ask_for_what_finds_the_cause():
    texts = {form.stem: form.read_text(encoding="utf-8") for form in FORMS}
    assert set(texts) == {"bug", "wrong_number", "new_method", "new_language"}
    assert "interlingua info" in texts["bug"]
    assert {"config", "seed"} <= set(re.findall(r"id: (\w+)", texts["wrong_number"]))
