"""Word vectors: options to choose them, and texts as sequences of vectors."""
