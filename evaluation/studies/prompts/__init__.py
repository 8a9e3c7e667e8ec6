"""Prompts: how far accuracy and answers depend on the wording of the prompt and its examples."""
