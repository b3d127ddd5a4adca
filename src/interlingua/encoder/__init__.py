"""Encoders of token batches to sentence vectors: backbone, vocabulary, pooling, encode."""
