"""Analyses of an encoder: its languages, its tokens and its attention."""
