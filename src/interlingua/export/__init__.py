"""Models for use elsewhere: sentence-transformers directories, cards, and the proof that vectors stay the same."""
