"""Heads on sentence vectors and token states, in training only."""
