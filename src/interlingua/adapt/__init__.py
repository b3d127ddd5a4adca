"""Changing a trained model, judged on development data: averaging weights, adding a language."""
