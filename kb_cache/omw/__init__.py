"""Wordnets of other languages than English, over the synsets of Princeton WordNet 3.0."""
