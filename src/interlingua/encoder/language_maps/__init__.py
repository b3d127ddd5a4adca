"""Maps that remove the language from vectors."""
