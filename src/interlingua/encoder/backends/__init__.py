"""Encoders of other makers behind the interface that tasks use.

``registry.BACKENDS`` names them.
"""
