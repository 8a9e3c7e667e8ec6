"""Rendering: from a plan and its wordings to texts."""
