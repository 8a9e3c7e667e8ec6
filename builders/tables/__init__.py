"""Probes of facts that users state in a table."""
