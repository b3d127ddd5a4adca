"""Export of models to other runtimes, with cards and a check that vectors stay the same."""
