"""Training of token vectors, without layers."""
