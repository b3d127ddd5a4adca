"""Tasks of labeled texts."""
