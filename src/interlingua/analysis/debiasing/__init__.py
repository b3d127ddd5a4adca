"""Remove the language from vectors, and measure what is gained."""
