"""docs/results.md says what every number is: its tables are made from the schema itself."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

import evaluation.results.types as results
from evaluation.results.analyses import all_analyses, facts, fitting
from evaluation.studies.scorecard import Scorecard

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
BLOCKS = {analysis.name: analysis.block for analysis in all_analyses() if analysis.block}


def models_of(kind: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names, directly or through others."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from models_of(field.annotation)
    for inner in get_args(kind):
        yield from models_of(inner)


def test_every_model_of_the_results_is_on_the_page_with_its_fields() -> None:
    listed = re.findall(r"^<!-- fields: ([\w.]+)\.(\w+) -->$", PAGE, re.M)
    models = {getattr(import_module(module), name) for module, name in listed}
    assert len(models) == len(listed)
    # The block of a fitted head comes from its learner.
    kinds = (results.Results, *BLOCKS.values(), fitting.Fitting, Scorecard)
    assert models == {model for kind in kinds for model in models_of(kind)}
    for model in models:
        assert model.__doc__
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name} has no description"
    for name in BLOCKS:
        assert f"`analyses.{name}`" in PAGE


def test_every_column_of_the_predictions_is_explained() -> None:
    columns = [*results.predictions_schema().names, *results.FURTHER_COLUMNS, *facts.COLUMNS]
    section = PAGE.split("\n## Predictions\n")[1].split("\n## ")[0]
    explained = re.findall(r"^\| `(\w+)` \|", section, re.M)
    assert explained == columns
