"""Decoders that restore or translate a sentence from its vector, in training only."""
