"""How good an encoder is: tasks over local folders, results with their provenance, tables."""
