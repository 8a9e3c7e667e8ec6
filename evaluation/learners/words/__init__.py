"""Networks over fixed word vectors: baselines without a pre-trained language model."""
