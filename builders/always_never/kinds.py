"""The kinds of words that Always-Never statements are made of, as ``data/kinds.yaml`` has them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, field_validator


class Kind(BaseModel):
    """Words of one kind.

    Attributes:
        isa: what ConceptNet's IsA leads to.
        synsets: what is above the word's sense in WordNet; empty for words that are no nouns.
        ends: relation and kind: what ConceptNet gives to words of that kind fits, too.
        any_sense: whether any sense of the word will do, or the first alone.
        not_below: synsets whose words do not fit after all.
        words: how many words a term may have.
        counted: whether only what is counted fits.
        pos: the part of speech.
        left_out: words that fit in principle, and read oddly.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    isa: tuple[str, ...] = ()
    synsets: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None
    any_sense: bool = False
    not_below: tuple[str, ...] = ()
    words: int = 1
    counted: bool = False
    pos: Literal["noun", "verb", "adjective"] = "noun"
    left_out: frozenset[str]

    @field_validator("left_out", mode="before")
    @classmethod
    def _terms(cls, text: Any) -> Any:
        return [word.replace("_", " ") for word in str(text).split()]


def _read() -> dict[str, Kind]:
    text = (
        resources.files("builders.always_never").joinpath("data", "kinds.yaml").read_text("utf-8")
    )
    return {name: Kind(**values) for name, values in yaml.safe_load(text).items()}


KINDS: Mapping[str, Kind] = _read()
"""Every kind, by name."""
