"""Models behind an OpenAI-compatible completions endpoint."""
