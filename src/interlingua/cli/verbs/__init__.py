"""Verbs on the command line: how each shows its result."""
