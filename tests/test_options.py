"""How options are spelled in help, and what is said of wrong values, for every options model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import click
import pytest
from pydantic import Field, ValidationError

from builders.engine.registry import PROBES
from evaluation.options import RunOptions
from evaluation.runs.spec import plugins
from evaluation.studies.registry import STUDIES
from kb_cache.base import find_kind, kind_names
from kbprobe.errors import UsageError
from kbprobe.options import Options, command_option, explain_all, metavar, named
from release.annotation.options import SheetOptions, VoteOptions

PYDANTIC = re.compile(
    r"input should|field required|unable to parse|after validation|tuple should|string should|"
    r"extra inputs|valid (integer|number|boolean|string)",
    re.IGNORECASE,
)
"""Words of pydantic's own messages."""

WRONG: tuple[Any, ...] = (
    *("", " ", "?", "-1", "0", "1e400", "nan", "inf", "9" * 100, "a=b", "1,,x", "\u0663"),
    *([], ["?"] * 40, {"a": 1}, 10**30),
)


def _models() -> Iterator[type[Options]]:
    yield from dict.fromkeys(entry.options for entry in PROBES.values())
    yield from (find_kind(name).options for name in kind_names())
    yield from (RunOptions, SheetOptions, VoteOptions)
    yield from dict.fromkeys(study.options for study in STUDIES)
    yield from dict.fromkeys(entry.options for entry in plugins())


MODELS = list(_models())
"""Every options model that a command is made from."""


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_wrong_value_is_refused_in_plain_words(model: type[Options]) -> None:
    told = list(_messages(model))
    assert told or not model.model_fields
    for message in told:
        assert not PYDANTIC.search(message)
        assert len(message) < 800


def _messages(model: type[Options]) -> Iterator[str]:
    """What is said of each wrong value of each field."""
    for name in model.model_fields:
        for value in WRONG:
            try:
                model.parse({name: value}, "owner")
            except UsageError as error:
                yield str(error)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_help_tells_the_type_of_each_value(model: type[Options]) -> None:
    for name, info in model.model_fields.items():
        option = command_option(name, info)
        kinds = str(info.annotation)
        if info.annotation is bool:
            assert option.metavar is None
        elif re.fullmatch(r"<class 'int'>|int \| None", kinds):
            assert option.metavar == "N"
        elif re.fullmatch(r"<class 'float'>|float \| None", kinds):
            assert option.metavar == "NUMBER"
        elif "Literal" in kinds:
            metavar = str(option.metavar)
            assert "|" in metavar or metavar[0] == "[" or "[of: " in str(option.help)


class Sample(Options):
    """A model of one field of each sort."""

    rows: int = Field(1, ge=1, le=9, description="Rows.")
    free: int = Field(1, description="Any.")
    shares: tuple[float, float] = Field((0.5, 0.5), description="Shares.")
    pos: tuple[Literal["noun", "verb"], ...] = Field(("noun",), min_length=1, description="Pos.")
    mode: Literal["fast", "slow"] | None = Field(None, description="How.")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rows": "x"}, "--rows: must be a whole number (got 'x')"),
        ({"rows": 10}, "--rows: must be at most 9 (got 10)"),
        ({"free": -(10**20)}, "--free: must be at least -9223372036854775807"),
        ({"free": 10**20}, "--free: must be at most 9223372036854775807"),
        ({"shares": ("1",)}, "--shares: value 2 is missing"),
        ({"pos": ()}, "--pos: must have at least one value (got ())"),
        ({"pos": ("nuon",)}, "--pos: must be one of noun, verb; did you mean 'noun' (got 'nuon')"),
        ({"mode": "fats"}, "--mode: must be one of fast, slow; did you mean 'fast' (got 'fats')"),
        ({"row": 1}, "owner has no option --row. Did you mean 'rows'?"),
    ],
)
def test_what_a_wrong_value_is_told(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Sample.parse(values, "owner")


def test_what_only_follows_from_another_error_is_left_out() -> None:
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate({"pos": ("x",)})
    assert len(caught.value.errors()) == 2
    assert explain_all(caught.value.errors()) == "pos.0: must be one of noun, verb (got 'x')"


def test_metavars() -> None:
    shown = {name: metavar(name, info) for name, info in Sample.model_fields.items()}
    assert shown == {
        "rows": "N",
        "free": "N",
        "shares": "NUMBER,NUMBER",
        "pos": "A,B,...",
        "mode": "[fast|slow]",
    }


class Other(Sample):
    """The same options, with another default and description."""

    DEFAULTS = named(rows=4)
    HELP = named(rows="Other rows.")


def test_other_defaults_and_descriptions() -> None:
    option = command_option("rows", Other.model_fields["rows"])
    assert (Other().rows, Sample().rows) == (4, 1)
    assert option.help == "Other rows. [default: 4]"
    with pytest.raises(UsageError, match="must be at most 9"):
        Other.parse({"rows": 10}, "owner")


class Lists(Options):
    names: tuple[str, ...] = Field(("a", "b"), description="A list.")
    shares: tuple[float, float] = Field((0.5, 0.5), description="Two numbers.")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], None),
        (["--names", "c,d"], "c,d"),
        (["--names", "c", "--names", "d,e"], "c,d,e"),
        (["--names", ""], ""),
    ],
)
def test_a_list_may_be_given_in_parts(words: list[str], names: str | None) -> None:
    fields = Lists.model_fields
    options = [command_option(name, info) for name, info in fields.items()]
    context = click.Command("list", params=options).make_context("list", list(words))
    assert context.params == {"names": names, "shares": None}
