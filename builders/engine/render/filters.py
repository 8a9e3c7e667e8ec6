"""The filters that a template may use.

Each takes and gives small values only, and says what it expects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from builders.english.articles import with_article
from builders.english.inflection import noun_plural


def _expect(value: object, name: str, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        expected = "a text" if str in kinds else "a list"
        raise TypeError(f"the filter {name!r} takes {expected}, not a {type(value).__name__}")
    return value


def _quoted(text: str) -> str:
    """Wrap in double quotes, or in single ones where the text holds double quotes itself.

    Double quotes come first since apostrophes are common in running text, where a single quote
    would seem to end the quotation.
    """
    return f"'{text}'" if '"' in text else f'"{text}"'


def _capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first(value: Sequence[object]) -> object:
    if not value:
        raise ValueError("the filter 'first' takes a list that is not empty")
    return value[0]


class Filter(NamedTuple):
    """A filter: its function, the types that it takes, and its arguments."""

    function: Callable[..., object]
    takes: tuple[type, ...] = (str,)
    arguments: tuple[int, int] = (0, 0)  # fewest and most, all of them constant texts


#: The filters that a template may use.
FILTERS: Mapping[str, Filter] = {
    "a": Filter(with_article),
    "capitalize_first": Filter(_capitalize_first),
    "default": Filter(lambda value, other: value or other, (object,), (1, 1)),
    "first": Filter(_first, (list, tuple)),
    # A text is refused although Python could join its letters: joins of joins would multiply.
    "join": Filter(lambda value, by="": by.join(map(str, value)), (list, tuple), (0, 1)),
    "length": Filter(len, (list, tuple, str)),
    "lower": Filter(str.lower),
    "plural": Filter(noun_plural),
    "quoted": Filter(_quoted),
    "trim": Filter(str.strip),
    "upper": Filter(str.upper),
}


def type_checked(name: str, filter_: Filter) -> Callable[..., object]:
    """Return a filter's function, with a check of the value's type that names the filter."""
    function, takes, _ = filter_
    return lambda value, *arguments: function(
        value if type(value) in takes else _expect(value, name, *takes), *arguments
    )
