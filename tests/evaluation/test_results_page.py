"""docs/results.md says what every number is; it is made from the schema itself."""

from pathlib import Path

import evaluation.results.analyses.facts as facts
import evaluation.results.analyses.fitting as fitting
import evaluation.results.analyses.labels as labels
import evaluation.results.analyses.seen as seen
import evaluation.results.analyses.vocabulary as vocabulary
import evaluation.results.types as results
from evaluation.results.analyses import all_analyses

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
MODELS = [
    "Results",
    "ProbeInfo",
    "ModelInfo",
    "AdapterInfo",
    "Scoring",
    "Metrics",
    "Estimate",
    "Cell",
    "Group",
]
MODELS += ["ClusterSize", "Bin", "Timings", "Labels", "LabelScores", "Statistic"]
MODELS += ["Facts", "Composition", "KnownPart", "Fitting", "Seen", "Vocabulary", "Slope"]
PAGES = (results, facts, fitting, labels, seen, vocabulary)
BLOCKS = {analysis.name: analysis.block for analysis in all_analyses() if analysis.block}


def test_every_analysis_with_numbers_of_its_own_is_on_the_page() -> None:
    assert {block.__name__ for block in BLOCKS.values()} <= set(MODELS)
    for name in BLOCKS:
        assert f"`analyses.{name}`" in PAGE.read_text(encoding="utf-8")


def tables() -> str:
    lines = []
    for name in MODELS:
        model = next(getattr(page, name) for page in PAGES if hasattr(page, name))
        lines += [
            f"## {name}",
            "",
            model.__doc__.splitlines()[0],
            "",
            "| field | what |",
            "|---|---|",
        ]
        lines += [f"| `{key}` | {info.description} |" for key, info in model.model_fields.items()]
        lines.append("")
    return "\n".join(lines)


def test_every_field_is_explained_as_the_schema_says():
    text = PAGE.read_text(encoding="utf-8")
    assert "| None |" not in tables(), "a field has no description"
    assert tables() in text, "docs/results.md is behind evaluation/results/types.py"


def test_every_column_of_the_predictions_is_explained():
    text = PAGE.read_text(encoding="utf-8")
    for column in [
        *results.predictions_schema().names,
        *results.FURTHER_COLUMNS,
        *facts.COLUMNS,
    ]:
        assert f"| `{column}` |" in text.split("## Predictions")[1], column
