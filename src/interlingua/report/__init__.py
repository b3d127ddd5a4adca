"""How results are shown: tables as text, Markdown and LaTeX, and pages that need no other file."""
