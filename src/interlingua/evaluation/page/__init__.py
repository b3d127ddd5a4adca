"""Many results as one self-contained HTML page."""
