"""tools/site_docstrings.py: equations of docstrings become blocks of LaTeX."""

from __future__ import annotations

from types import SimpleNamespace

from tools.site_docstrings import EquationsAsCode, equations_as_code

TEXT = """First line.

.. math::

    a = b
    + c

*Symbols*: a.
"""


def test_an_equation_is_fenced():
    assert equations_as_code(TEXT) == "First line.\n\n```latex\na = b\n+ c\n```\n\n*Symbols*: a.\n"
    assert equations_as_code(".. math:: x^2\nText") == "```latex\nx^2\n```\n\nText"


def test_other_text_stays():
    text = "First.\n\n    code\n\nArgs:\n    x: math.\n"
    assert equations_as_code(text) == text


def test_objects_without_docstring_are_left():
    documented = SimpleNamespace(docstring=SimpleNamespace(value=TEXT))
    extension = EquationsAsCode()
    extension.on_object(obj=SimpleNamespace(docstring=None))
    extension.on_object(obj=documented)
    assert "```latex" in documented.docstring.value


def test_an_equation_within_a_line_becomes_code():
    text = r"With :math:`u_i = Q^\top x` and :math:`v`," + "\n\n.. math:: u_i v\n"
    expected = r"With `u_i = Q^\top x` and `v`," + "\n\n```latex\nu_i v\n```\n\n"
    assert equations_as_code(text) == expected
