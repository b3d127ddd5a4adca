"""Readers of evaluation sets, each in its own published layout; every complaint names the file and line."""
