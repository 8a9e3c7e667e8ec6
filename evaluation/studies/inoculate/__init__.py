"""Inoculation by fine-tuning: what a little training on a probe changes, and what it costs."""
