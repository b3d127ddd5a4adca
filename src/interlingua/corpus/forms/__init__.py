"""Forms of a text that mean the same."""
