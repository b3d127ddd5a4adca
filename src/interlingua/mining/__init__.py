"""Finding translations: exact nearest neighbors over memory maps."""
