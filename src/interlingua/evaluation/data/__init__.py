"""Readers of evaluation sets, each in its own published layout.

Every complaint names the file and line.
"""
