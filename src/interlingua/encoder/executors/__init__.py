"""Executors: who computes layers, training passes and exact searches, and how one is chosen."""
