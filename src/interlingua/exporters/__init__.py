"""Models for use elsewhere, with their cards, and the proof that vectors stay the same."""
