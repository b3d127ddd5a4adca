"""The quickstart: from translation catalogues to a trained, measured encoder in minutes."""
