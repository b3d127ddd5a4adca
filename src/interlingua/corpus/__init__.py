"""Parallel text: reading, cleaning, deduplicating, splitting and sampling it.

Nothing here knows a model.
"""
