"""From translation catalogues to a trained, measured encoder in minutes, on real data."""
