"""Changing a trained model: averaging weights, adding a language.

Each judged on development data.
"""
