"""Finding translations: exact nearest neighbours over memory maps."""
