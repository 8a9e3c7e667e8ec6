"""Adversaries: models that see everything in a probe except what is needed to answer it."""
