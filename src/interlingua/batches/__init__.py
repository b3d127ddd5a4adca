"""Batches of tokens: packed, masked, mixed over languages, a pure function of seed and step."""
