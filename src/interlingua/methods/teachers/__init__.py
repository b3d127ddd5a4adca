"""Teachers: moving averages, frozen models, and banks of their vectors."""
