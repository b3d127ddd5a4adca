"""Output of results: tables as text, Markdown and LaTeX, and self-contained pages."""
