"""From translation catalogues to a trained, measured encoder in minutes: the library's main job, on real data."""
