"""Adversaries: models that see everything of a probe but what they should need."""
