"""What is derived from the roles of the options of runs, for each option."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import pytest

from evaluation.names import options_name
from evaluation.options import (
    RECORDED,
    SELECTING,
    TRAINING,
    Models,
    RunOptions,
    options_that,
    run_role,
)
from evaluation.runs.spec import NOT_OF_LOADED, RunSpec, plugins
from evaluation.studies.base import StudyRequest
from evaluation.studies.baselines import _check_recordable
from evaluation.studies.registry import STUDIES
from kbprobe.cli import SECTIONS
from kbprobe.errors import UsageError
from kbprobe.options import option_name

FIELDS = RunOptions.model_fields
NEEDED: dict[str, dict[str, Any]] = {
    **{key: {"train": 5} for key in TRAINING - {"train"}},
    "mix_in": {"train": 5, "mix_rows": 5},
    "chat_date": {"chat": True},
    "mix_rows": {"train": 5, "mix_in": "other"},
    "limit_by": {"limit": 5},
    **{key: {"endpoint": "u"} for key in options_that(lambda role: role.models == Models.ENDPOINT)},
}
"""Options that others require."""


def another(name: str) -> Any:
    """Return a value of an option that is not its default."""
    info = FIELDS[name]
    if isinstance(info.default, bool):
        return not info.default
    kinds = [info.annotation, *get_args(info.annotation)]
    for kind in kinds:
        if get_origin(kind) is Literal:
            return next(value for value in get_args(kind) if value != info.default)
        if kind in (int, float):
            return 7
    if name == "label_names":
        return ("neutral", "entailment")
    if name == "chat_date":
        return "2025-01-31"
    return {"some": 1} if info.default == {} else "other"


def given(name: str) -> dict[str, Any]:
    needed = {key: value for key, value in NEEDED.get(name, {}).items() if key != name}
    return {**needed, name: another(name)}


@pytest.mark.parametrize("name", FIELDS)
def test_folders_are_named_after_what_results_depend_on(name: str) -> None:
    role, values = run_role(FIELDS[name]), given(name)
    named = RunSpec.parse("probe", "model", values).named_options()
    assert (name in named) == (role.recorded != "no")
    assert (name.replace("_", "-") in options_name(named)) == (name in named)
    assert (name in RECORDED) == (role.recorded == "options")
    assert role.section in SECTIONS


@pytest.mark.parametrize("name", SELECTING)
def test_an_option_that_selects_rows_is_named_where_all_rows_are_needed(name: str) -> None:
    request = StudyRequest.parse(
        STUDIES.get("baselines"), ["p"], [], {"record": True, **given(name)}
    )
    with pytest.raises(UsageError, match=f"for all rows.*leave .*{option_name(name)}"):
        _check_recordable(request)
    with pytest.raises(UsageError, match=f"crossval sets {name} itself"):
        StudyRequest.parse(STUDIES.get("crossval"), ["p"], [], {name: another(name)})


@pytest.mark.parametrize("name", FIELDS)
def test_what_does_not_apply_to_a_model_is_refused(name: str) -> None:
    models = run_role(FIELDS[name]).models
    spec = RunSpec.parse("probe", "model", {name: another(name), **NEEDED.get(name, {})})
    loaded = spec.run.model_dump(exclude_defaults=True).keys() & NOT_OF_LOADED
    if Models.LOADED in models and not loaded:
        spec.refuse_for_loaded()
    else:
        with pytest.raises(UsageError, match="the model to evaluate is in memory"):
            spec.refuse_for_loaded()
    behind = {**given(name), "endpoint": "u"}
    if Models.ENDPOINT in models:
        assert RunSpec.parse("probe", "model", behind).run.endpoint == "u"
    else:
        with pytest.raises(UsageError, match="is for models that are loaded here"):
            RunSpec.parse("probe", "model", behind)
    if models == Models.ENDPOINT and name != "endpoint":
        with pytest.raises(UsageError, match="requires --endpoint URL"):
            RunSpec.parse("probe", "model", {name: another(name)})


def test_studies_fix_options_that_exist() -> None:
    known = {*FIELDS, *(name for entry in plugins() for name in entry.options.model_fields)}
    for study in STUDIES:
        assert study.fixed <= known, study.name
