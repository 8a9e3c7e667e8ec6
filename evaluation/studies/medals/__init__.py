"""Medals: which probes a model's learning curves show it to know, in one table."""
