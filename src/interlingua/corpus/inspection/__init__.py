"""What is in a file of texts or pairs, and what is wrong with it, before any work."""
