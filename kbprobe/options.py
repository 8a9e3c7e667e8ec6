"""Options as typed models that refuse what they do not know, and how a command line spells them.

A command's options, their help, the tables in cards and the records in manifests are all made
from such models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from kbprobe.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import click


class Options(BaseModel):
    """A set of options, each with a default and a description."""

    # Validators are built when a value is first checked: help and lists need none.
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, defer_build=True)

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
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = "; ".join(explain(problem, option_name) for problem in error.errors())
            raise UsageError(f"{owner}: {problems}") from None


def explain(problem: Any, spell: Callable[[str], str] = str) -> str:
    """Put one of pydantic's validation errors in plain words, its place spelled by ``spell``."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    place = ".".join(str(part) for part in problem["loc"])
    if not place:
        return message
    return f"{spell(place)}: {message} (got {problem['input']!r})"


def spelled(value: Any) -> str:
    """Spell a value as the command line takes it: lists with commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def option_name(field: str) -> str:
    """Return the command-line option of a field: ``max_hops`` is ``--max-hops``."""
    return f"--{field.split('.')[0].replace('_', '-')}"


def command_option(name: str, info: Any) -> click.Option:
    """Make a command-line option of a field; the model validates what it is given."""
    import click

    default = info.default
    shown, flag = spelled(default), option_name(name)
    if info.annotation is bool:
        flags = [f"{flag}/--no-{flag.removeprefix('--')}", name]
        return click.Option(flags, default=None, help=f"{info.description} [{shown}]")
    suffix = f" [{shown}]" if default not in (None, {}, ()) else ""
    if len(suffix) > 60:
        suffix = f" [{suffix[2:50]}...]"
    metavar = "A,B,..." if isinstance(default, tuple) else name.split("_")[-1].upper()
    # The braces of click's own markup and its rewrapping leave brackets alone.
    return click.Option([flag, name], metavar=metavar, help=f"{info.description}{suffix}")


def parsed(info: Any, text: Any) -> Any:
    """Split a comma-separated value where the field is a list; pydantic does the rest."""
    if isinstance(info.default, tuple) and isinstance(text, str):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text
