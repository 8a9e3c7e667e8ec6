"""How pairs of ``fw_negation`` are negated: the names of its families, and what they share.

The builder names the families of its rows by these patterns, and reports pool them.
"""

from __future__ import annotations

FORMS = ("none", "not", "antonym", "both")
"""How a text is negated: not at all, explicitly, by an antonym (lexically), or in both ways."""

PATTERNS = tuple(f"{premise}, {hypothesis}" for premise in FORMS for hypothesis in FORMS)
"""The names of the families: the forms of premise and hypothesis."""

KINDS = ("no negation", "lexical", "explicit", "lexical and explicit")
"""How the two texts of a pair are negated, taken together (Kim et al. 2019)."""


def kind_of(pattern: str) -> str:
    """Return the kind of a pattern, of :data:`KINDS`.

    >>> [kind_of(name) for name in ("none, none", "none, antonym", "not, not", "not, antonym")]
    ['no negation', 'lexical', 'explicit', 'lexical and explicit']
    """
    forms = {*pattern.split(", ")}
    lexical, explicit = (
        not forms.isdisjoint(("antonym", "both")),
        not forms.isdisjoint(("not", "both")),
    )
    return KINDS[lexical + 2 * explicit]
