"""The WordNet probes."""
