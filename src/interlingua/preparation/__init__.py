"""From files of parallel text to a corpus to train on.

The corpus is clean, deduplicated, decontaminated, split and tokenized.
"""
