"""The scorer of encoder-decoder models."""
