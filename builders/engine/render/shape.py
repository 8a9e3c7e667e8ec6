"""How the rows of a probe are asked, whatever they ask."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowShape:
    """What rendering needs to know of a probe.

    Attributes:
        setup: the name of their setup.
        choice_fields: the fields that a choice's template may use.
        arguments_decide: whether the arguments of a question together decide its answer (two
            ages), so that the audit holds what sees them together to no bar.
    """

    setup: str
    choice_fields: frozenset[str]
    arguments_decide: bool
