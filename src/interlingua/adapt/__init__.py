"""Changes of a trained model, judged on development data: averaged weights, a new language."""
