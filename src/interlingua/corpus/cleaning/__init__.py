"""Cleaning: normalization, rules, duplicates, and the languages of texts."""
