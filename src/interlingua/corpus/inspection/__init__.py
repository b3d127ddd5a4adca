"""Contents and faults of a file of texts or pairs, before any work."""
