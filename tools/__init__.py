"""Programs for contributors, each with its usage in its docstring."""
