"""The transformer: layers, attention, positions, families of models, and their weights."""
