"""The causal-LM scorer."""
