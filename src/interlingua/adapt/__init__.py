"""Changing a trained model: averaging weights, adding a language; each judged on development data."""
