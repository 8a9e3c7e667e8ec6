"""Scorers that read the answer which a model writes: of a chat endpoint, or loaded here."""
