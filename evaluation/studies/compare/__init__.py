"""Paired comparison: whether models differ in accuracy on the same rows, each with each."""
