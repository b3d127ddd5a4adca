"""Tasks of graded and labeled pairs."""
