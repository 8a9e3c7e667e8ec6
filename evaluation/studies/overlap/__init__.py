"""Prediction overlap: how similar the answers of models are, pair by pair."""
