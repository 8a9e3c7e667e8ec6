"""Scorers: what a model makes of each choice of each item."""
