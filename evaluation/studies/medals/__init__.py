"""Medals: one table of the probes that models know, judged by their learning curves."""
