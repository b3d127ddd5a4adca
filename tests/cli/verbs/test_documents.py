"""``interlingua documents`` prints its report on standard error."""

from __future__ import annotations

from interlingua.cli.verbs.documents import documents
from tests.alignment.invented_documents import contents, write_sides


def test_the_report_is_on_standard_error_unless_it_is_quiet(done, tmp_path):
    assert documents.__doc__
    write_sides(tmp_path, contents(3))
    command = f"documents tests.mining.invented:embed {tmp_path}/de {tmp_path}/en"
    loud = done(command, f"--backend function -o {tmp_path}/m.tsv")
    assert loud.out == ""
    assert "3 pairs" in loud.err
    quiet = done(command, f"--backend function -o {tmp_path}/m.tsv --quiet")
    assert quiet.out == quiet.err == ""
