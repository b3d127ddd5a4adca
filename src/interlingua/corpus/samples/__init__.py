"""Samples of texts and pairs."""
