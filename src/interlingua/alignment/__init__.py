"""Alignment of documents, sentence by sentence."""
