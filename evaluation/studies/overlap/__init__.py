"""Prediction overlap: how alike the answers of models are, pair by pair."""
