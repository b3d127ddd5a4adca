"""Tasks of questions and passages."""
