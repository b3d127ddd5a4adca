"""Embed files of lines."""
