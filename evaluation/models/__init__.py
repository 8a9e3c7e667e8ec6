"""Checkpoints: found, identified by content, and loaded when scores are not known yet."""
