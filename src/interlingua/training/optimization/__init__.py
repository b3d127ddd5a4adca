"""Optimizers, learning rates, and scales of losses and gradients."""
