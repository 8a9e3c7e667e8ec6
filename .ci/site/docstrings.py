"""Docstrings as Markdown: doctests become code blocks, and cross-references plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe
from reference import ROLE

DOCTEST = re.compile(r"(?:^>>>.*\n?(?:^(?!>>>)\S.*\n?)*)+", re.M)


class MarkdownDocstrings(griffe.Extension):
    """Rewrites docstrings before they are parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring:
            text = ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = DOCTEST.sub(_fenced, text)


def _fenced(found: re.Match[str]) -> str:
    return "```pycon\n" + found[0].replace("  # doctest: +SKIP", "").rstrip("\n") + "\n```\n"
