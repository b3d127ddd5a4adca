"""Feeds of a run, from files to batches."""
