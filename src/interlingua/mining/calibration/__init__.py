"""Calibration: from a score to a probability."""
