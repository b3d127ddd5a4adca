"""One file, one protocol."""
