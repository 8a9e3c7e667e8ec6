"""The checks of a probe before it is released."""
