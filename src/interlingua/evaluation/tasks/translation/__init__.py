"""Tasks of sentences and their translations."""
