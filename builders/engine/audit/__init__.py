"""The audit: what can be answered without reading the question."""
