import io

from rich.console import Console

from interlingua.getting_started import tables
from interlingua.getting_started.report import verdict
from tests.getting_started.findings import made_up


def shown(show, *arguments):
    console = Console(record=True, width=140, file=io.StringIO())
    show(console, *arguments)
    return console.export_text()


def test_sources_and_what_is_missing():
    findings = made_up()
    text = shown(tables.show_sources, findings.sources, findings.unavailable)
    assert "Django" in text
    assert "1,234" in text
    assert "not available: wagtail (no matching distribution)" in text


def test_findings_put_other_scripts_first_and_end_with_commands(tmp_path):
    findings = made_up()
    text = shown(tables.show_findings, findings, tmp_path)
    assert text.index("Greek") < text.index("German")
    assert verdict(findings)[:40] in text
    assert "✓ 0.80 Greek" in text
    assert "✗ 0.40 Hebrew" in text
    assert f"4.0 min in total. Report: {tmp_path / 'report.html'}" in text.replace("\n", "")
    assert text.rstrip().endswith("interlingua embed model FILE.txt -o FILE.npy")
