"""Scorers of models behind an endpoint: log-likelihoods of choices, and their PMI."""
