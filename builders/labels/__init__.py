"""Answers that people, or readings of a language model, give to candidates for rows."""
