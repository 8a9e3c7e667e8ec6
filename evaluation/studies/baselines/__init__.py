"""The study of baselines: what is reached without a language model, or without the question."""
