"""Texts in sections, sentences and words."""
