"""Scorers: they score each choice of each item with a model."""
