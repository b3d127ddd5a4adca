"""Training: an explicit loop over an engine; step t depends on (state, seed, t) and nothing else."""
