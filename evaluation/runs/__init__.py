"""Runs: a model on a probe, from start to results."""
