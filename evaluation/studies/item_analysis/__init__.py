"""Item analysis: which rows of a probe to read first, by the answers of several models."""
