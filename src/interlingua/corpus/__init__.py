"""Parallel text: reading, cleaning, deduplicating, splitting and sampling it.

No module of this package depends on a model.
"""
