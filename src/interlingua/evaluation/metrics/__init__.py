"""Metrics over embeddings; nothing here reads a file or knows an encoder."""
