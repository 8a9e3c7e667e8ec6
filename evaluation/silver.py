"""Silver labels: a classifier labels the rows that people have not labelled yet.

They are kept separate from human labels: the rule of each line names the model ("silver:MODEL"),
the card of a probe built with them says so, and no probe is built from both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evaluation.options import ModelOptions
from evaluation.scorers.classifier import CLASSIFIER, ClassifierOptions
from kbprobe.cli import command
from kbprobe.errors import UsageError
from kbprobe.format.labels import check_suffix, write_labels
from kbprobe.options import command_option, given_of
from kbprobe.terminal import echo

RULE = "silver:"

_FIELDS = {**ClassifierOptions.model_fields, **ModelOptions.model_fields}


def silver_labels(probe: Path, model: str, **options: Any) -> list[dict[str, Any]]:
    """Return a line of a labels file for each row of a probe, in all of its splits.

    Args:
        probe: a folder that ``build-probe`` wrote; existing answers are ignored.
        model: a sequence classifier whose classes are the labels of the rows.
        **options: those of models (:class:`evaluation.options.ModelOptions`) and of the classifier
            (:class:`evaluation.scorers.classifier.ClassifierOptions`).

    Raises:
        UsageError: there is no such probe or model, or the classes are not the labels.
        KbprobeError: the probe or the model cannot be read.
    """
    import datasets
    import pyarrow as pa

    from evaluation import evaluate
    from kbprobe.format.dataset import load

    lines = []
    for split in load(probe).values():
        table = split.with_format("arrow")[:]
        # Evaluation refuses rows without answers, so the first choice is used as a placeholder.
        for name, value in (("answer", 0), ("answerKey", table["choices"][0]["label"][0])):
            at = table.column_names.index(name)
            filled = pa.repeat(pa.scalar(value, table.schema.field(name).type), len(table))
            table = table.set_column(at, table.schema.field(name), filled)
        asked = datasets.Dataset(table)
        done = evaluate(asked, model, scorer=CLASSIFIER.name, cache=False, **options).to_pandas()
        texts = [choices["text"] for choices in table["choices"].to_pylist()]
        for row, answer, choices in zip(done.id, done.prediction, texts, strict=True):
            lines.append(_line(str(row), int(answer), choices, model))
    return lines


def _line(row: str, answer: int, texts: list[str], model: str) -> dict[str, Any]:
    said: Mapping[str, Any] = {"id": row, "answer": answer, "label": texts[answer]}
    return {**said, "kept": True, "reason": "", "agreement": 1.0, "rule": RULE + model, "votes": []}


@command(
    "silver",
    help="Label the rows of a probe by a classifier, where no people have: silver labels, for "
    "build-probe NAME --labels FILE.",
)
@click.argument("probe", type=click.Path(path_type=Path), metavar="DIR")
@click.option("-m", "--model", required=True, metavar="MODEL", help="A folder or a Hub id.")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Labels file to write (.jsonl, .parquet).",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace a file.")
def silver_command(probe: Path, model: str, output: Path, overwrite: bool, **values: Any) -> None:
    """Write the labels file."""
    check_suffix(output)
    if output.exists() and not overwrite:
        raise UsageError(f"{output} is there already. Replace it with --overwrite.")
    lines = silver_labels(probe, model, **given_of(_FIELDS, values))
    write_labels(output, lines)
    echo(f"Wrote {output}: {len(lines):,} silver labels by {model}", err=True)


silver_command.params += [command_option(name, field, "Scoring") for name, field in _FIELDS.items()]
