"""Word vectors: which ones are read, and texts as sequences of them."""
