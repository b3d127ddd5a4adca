"""Readers of evaluation sets, each in its own published layout.

Every error message names the file and line.
"""
