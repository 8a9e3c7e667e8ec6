"""The scorers of masked LMs."""
