"""Checks that compare the form of two texts by rules, and need no model."""
