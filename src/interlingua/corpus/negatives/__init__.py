"""Sentences that are altered to mean something else: hard negatives."""
