"""Evaluation of encoders: tasks over local folders, results with their provenance, tables."""
