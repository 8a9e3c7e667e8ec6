"""Comparisons of ages, of several ages, and of things: no graph, only an order."""
