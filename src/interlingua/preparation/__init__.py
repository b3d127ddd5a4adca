"""Preparation of files of parallel text into a corpus for training.

The corpus is clean, deduplicated, decontaminated, split and tokenized.
"""
