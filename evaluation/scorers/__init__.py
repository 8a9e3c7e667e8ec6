"""Scorers, which score each choice of each item with a model."""
