"""Wordings, one YAML file a probe."""
