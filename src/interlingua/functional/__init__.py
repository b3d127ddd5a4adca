"""Pure functions, tensors in and tensors out: no model, no rank, no config."""
