"""Word vectors (GloVe, word2vec): a vector for each word of a vocabulary, whatever its context."""
