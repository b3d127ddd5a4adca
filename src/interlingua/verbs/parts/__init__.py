"""Parts of verbs: shared options, checks of inputs, and steps of one verb."""
