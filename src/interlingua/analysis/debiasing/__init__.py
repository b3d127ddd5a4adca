"""Remove the language from vectors, and measure the gain."""
