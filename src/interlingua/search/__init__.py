"""Finding passages: indexes over texts."""
