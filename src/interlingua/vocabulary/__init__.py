"""Vocabularies: tokenizers, the names of special tokens, training, trimming and checks."""
