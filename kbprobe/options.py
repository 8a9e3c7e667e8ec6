"""Options as typed models that reject unknown names, and their spelling on a command line.

A command's options, their help, the tables in cards and the records in manifests are all made
from such models.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from kbprobe.cli import MAX_SEED as MAX_SEED
from kbprobe.cli import Option
from kbprobe.errors import UsageError, did_you_mean

MAX_VALUE_CHARACTERS = 60
"""Maximum number of characters shown of a default or of an invalid value."""

MAX_ERRORS = 5
"""Maximum number of errors listed for one set of values; the others are counted."""


REPEATED = "KEY=VALUE"
"""The metavar of options that are given once for each key."""


@dataclass(frozen=True)
class Metavar:
    """The name of an option's value in help, if not given by its type: ``Annotated[str, ...]``."""

    text: str


@dataclass(frozen=True)
class Role:
    """What an option is for: ``Annotated[int, Role("Training")]``.

    Attributes:
        section: its section of the help; empty for that of its command.
        rare: whether few people need it: help shows it only with ``--help-all``.
    """

    section: str = ""
    rare: bool = False


RARE = Role(rare=True)


def named(**values: Any) -> Mapping[str, Any]:
    """Return values by the names of options, for `DEFAULTS` and `HELP` of a model."""
    return MappingProxyType(values)


class Options(BaseModel):
    """A set of options, each with a default and a description.

    Attributes:
        DEFAULTS: other defaults of options of the parent models (:func:`named`).
        HELP: other descriptions of them.
    """

    DEFAULTS: ClassVar[Mapping[str, Any]] = named()
    HELP: ClassVar[Mapping[str, str]] = named()

    # Validators are built when a value is first checked: help and lists need none.
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        super().__pydantic_init_subclass__(**settings)
        defaults, descriptions = (vars(cls).get(name, {}) for name in ("DEFAULTS", "HELP"))
        for name in {**defaults, **descriptions}:
            field = cls.__pydantic_fields__[name] = copy(cls.__pydantic_fields__[name])
            field.default = defaults.get(name, field.default)
            field.description = descriptions.get(name, field.description)

    @field_validator("*")
    @classmethod
    def _integers_fit(cls, value: Any) -> Any:
        """Refuse integers that no file could keep."""
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and abs(number) > MAX_SEED:
                bound = f"at most {MAX_SEED}" if number > 0 else f"at least {-MAX_SEED}"
                raise ValueError(f"must be {bound}")
        return value

    @classmethod
    def parse(cls, values: dict[str, Any], owner: str) -> Self:
        """Validate options given by name.

        Raises:
            UsageError: a name is unknown or a value impossible; the message names the owner, and
                the option as it is written on the command line.
        """
        for name in values:
            if name not in cls.model_fields:
                hint = did_you_mean(name, cls.model_fields)
                raise UsageError(f"{owner} has no option {option_name(name)}.{hint}")
        fields = cls.model_fields
        try:
            return cls.model_validate({name: parsed(fields[name], values[name]) for name in values})
        except ValidationError as error:
            problems = explain_all(error.errors(), option_name)
            raise UsageError(f"{owner}: {problems}") from None


def explain_all(problems: Iterable[Any], spell: Callable[[str], str] = str) -> str:
    """Put pydantic's validation errors in plain words, without those that only follow from others.

    For example, a list with an invalid entry is also reported as too short.
    """
    told: list[tuple[Any, ...]] = []
    sentences = []
    for problem in problems:
        place = tuple(problem["loc"])
        if place and any(place == other[: len(place)] for other in told):
            continue
        told.append(place)
        sentences.append(explain(problem, spell))
    sentences = list(dict.fromkeys(sentences))
    more = f"; and {len(sentences) - MAX_ERRORS} more" if len(sentences) > MAX_ERRORS else ""
    return "; ".join(sentences[:MAX_ERRORS]) + more


def explain(problem: Any, spell: Callable[[str], str] = str) -> str:
    """Put one of pydantic's validation errors in plain words, its place spelled by ``spell``.

    >>> explain({"type": "missing", "loc": ("probes", 0, "probe"), "msg": "", "input": {}})
    'probes.0.probe: is missing'
    """
    message, place = _in_words(problem), ".".join(map(str, problem["loc"]))
    if not place:
        return message
    if problem["type"] == "value_error" and message.endswith(")") and " (got " in message:
        return f"{spell(place)}: {message}"  # says itself which of the values is wrong
    if problem["type"] == "missing":
        if isinstance(last := problem["loc"][-1], int):  # one of several values in an option
            return f"{spell(place)}: value {last + 1} is missing"
        return f"{spell(place)}: {message}"
    shortened = reprlib.Repr()
    shortened.maxstring = shortened.maxother = MAX_VALUE_CHARACTERS
    return f"{spell(place)}: {message} (got {shortened.repr(problem['input'])})"


_IN_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "unexpected_keyword_argument": "is unknown",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "too_short": "must have at least {min_length} values",
    "too_long": "must have at most {max_length} values",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "path_type": "must be a path",
    "dict_type": "must be names with values",
    "mapping_type": "must be names with values",
    "model_type": "must be names with values",
    "model_attributes_type": "must be names with values",
}
"""Our messages for pydantic's error types, as format strings of their context."""


def _in_words(problem: Any) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in ("literal_error", "enum") and "expected" in context:
        expected = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        hint = did_you_mean(str(problem["input"]), expected.split(", "))
        return f"must be one of {expected}{hint and ';' + hint.lower().rstrip('?')}"
    if kind in _IN_WORDS:
        words = _IN_WORDS[kind].format(**context)
        return words.replace(" 1 values", " one value").replace(" 1 characters", " one character")
    message = str(problem["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def spelled(value: Any) -> str:
    """Return a value as it is spelled on the command line: lists with commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def option_name(field: str) -> str:
    """Return the command-line option of a field: ``max_hops`` is ``--max-hops``."""
    return f"--{field.split('.')[0].replace('_', '-')}"


def role(info: Any) -> Role:
    """Return what the option of a field is for."""
    return next((note for note in reversed(info.metadata) if isinstance(note, Role)), Role())


def metavar(name: str, info: Any) -> str:
    """Return the name of an option's value in help: its type, or all allowed values."""
    for note in info.metadata:
        if isinstance(note, Metavar):
            return note.text
    return _metavar(info.annotation, name.split("_")[-1].upper())


def _metavar(kind: Any, otherwise: str) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _metavar(next(one for one in inner if one is not NoneType), otherwise)
    if origin is Literal:
        return f"[{'|'.join(map(str, inner))}]"
    if origin is tuple and Ellipsis not in inner:
        return ",".join(_metavar(one, otherwise) for one in inner)
    if origin is tuple:
        one = {int: "N", float: "NUMBER", Path: "FILE"}.get(inner[0], "A")
        return f"{one},..." if one != "A" else "A,B,..."
    if origin is dict:
        return "KEY=VALUE,..."
    return {int: "N", float: "NUMBER", Path: "FILE"}.get(kind, otherwise)


def choices_of(info: Any) -> tuple[str, ...]:
    """Return the allowed values of an option, or of each entry of its list; () if unrestricted."""
    kinds = [info.annotation]
    for kind in kinds:
        if get_origin(kind) is Literal:
            return tuple(map(str, get_args(kind)))
        if get_origin(kind) in (Union, UnionType, tuple):
            kinds += get_args(kind)
    return ()


def shown_default(value: Any) -> str:
    """Return a default as help shows it: shortened, and empty if there is none.

    >>> shown_default(("noun", "verb")), shown_default(True), shown_default(None)
    ('noun,verb', 'yes', '')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in (None, {}, (), ""):
        return ""
    text = spelled(value)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return text[:MAX_VALUE_CHARACTERS].rpartition(",")[0] + ",..."


def command_option(name: str, info: Any, section: str = "Output") -> Option:
    """Make a command-line option of a field; the model validates what it is given."""
    flag, default = option_name(name), shown_default(info.default)
    notes = [f"default: {default}"] if default and info.default is not False else []
    own = role(info)
    place: dict[str, Any] = {"section": own.section or section, "rare": own.rare}
    if info.annotation is bool:
        flags = [f"{flag}/--no-{flag.removeprefix('--')}", name]
        return Option(flags, default=None, help=_help(info, notes), **place)
    if get_origin(info.annotation) is tuple and (allowed := choices_of(info)):
        notes.insert(0, f"of: {', '.join(allowed)}")
    shown = metavar(name, info)
    if shown == REPEATED:
        place |= {"multiple": True, "callback": lambda _context, _option, given: given or None}
    elif isinstance(info.default, tuple) and Ellipsis in get_args(info.annotation):
        # A list that is given in parts would otherwise keep the last alone, without a word.
        place |= {"multiple": True, "callback": _joined}
    return Option([flag, name], metavar=shown, help=_help(info, notes), **place)


def _joined(_context: object, _option: object, given: Sequence[str]) -> str | None:
    return ",".join(given) if given else None


def _help(info: Any, notes: list[str]) -> str:
    # The braces of click's own markup and its rewrapping leave brackets alone.
    return f"{info.description} [{'; '.join(notes)}]" if notes else str(info.description)


def parsed(info: Any, text: Any) -> Any:
    """Split a comma-separated value where the field is a list; pydantic does the rest."""
    if isinstance(info.default, tuple) and isinstance(text, str):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def given_of(fields: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given to a command, with lists split, from all values."""
    return {n: parsed(fields[n], value) for n, value in values.items() if value is not None}
