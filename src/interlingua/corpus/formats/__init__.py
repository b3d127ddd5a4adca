"""Formats of text files: one module per format."""
