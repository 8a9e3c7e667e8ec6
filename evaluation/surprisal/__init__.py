"""Surprisals: how many bits each token of each choice costs a causal language model."""
