"""lm-evaluation-harness: a YAML file for each task, and a group of all tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.format.setups import CLOZE, MASK, QUESTION, task_name
from release.cards import yaml_text
from release.exports.source import ProbeSource, Target, Task, Written, place_data

VERSION = 1.0
"""Version of the wording below, to be increased when a change affects a task's numbers."""

# The harness renders these with a row's columns as variables; texts of rows are never rendered.
# A text that is a column's name is that column, to the letter. Choices are read back from how
# Python writes a list, which keeps every character.
_BEFORE = "{{ question.partition('" + MASK + "')[0] }}"
_FILLED = (
    "{% set all = namespace(texts=[]) %}"
    "{% for choice in choices.text %}"
    "{% set all.texts = all.texts + [choice ~ question.partition('" + MASK + "')[2]] %}"
    "{% endfor %}{{ all.texts }}"
)
_WORDINGS: dict[frozenset[str], dict[str, str]] = {
    frozenset({QUESTION}): {
        "doc_to_text": "question",
        "doc_to_choice": "{{ choices.text }}",
        "target_delimiter": " ",
    },
    frozenset({CLOZE}): {
        "doc_to_text": _BEFORE,
        "doc_to_choice": _FILLED,
        "target_delimiter": "",
    },
}
"""The prompt of a task, by the setups of its rows."""


def write(source: ProbeSource, folder: Path, repo_id: str | None) -> Written:
    """Write the tasks, and the rows unless they are read from the Hub."""
    for task in source.tasks:
        if repo_id is None:
            files = place_data(task, source, folder)
            data = {"dataset_path": "parquet", "dataset_kwargs": {"data_files": files}}
        else:
            data = {"dataset_path": repo_id, "dataset_name": task.config}
        text = yaml_text(_config(task, source, data))
        (folder / f"{task.name}.yaml").write_text(text, encoding="utf-8", newline="\n")
    name = source.tasks[0].name
    if len(source.tasks) > 1:
        name = task_name(source.name, "all configs", source.split)
        tasks = [task.name for task in source.tasks]
        group = {"group": name, "task": tasks, "metadata": {"version": VERSION}}
        (folder / f"{name}.yaml").write_text(yaml_text(group), encoding="utf-8", newline="\n")
    command = "lm_eval --model hf --model_args pretrained=MODEL --include_path . --tasks "
    return Written((command + name,), _notes(source.tasks))


def _config(task: Task, source: ProbeSource, data: dict[str, Any]) -> dict[str, Any]:
    wording = _WORDINGS.get(frozenset(task.setups))
    if wording is None:
        raise UsageError(
            f"The config {task.config!r} mixes {' and '.join(sorted(task.setups))} rows, which "
            "lm-evaluation-harness asks in different ways. Export to jsonl-arc, or leave it out."
        )
    if task.setups == {CLOZE}:
        _check_clozes(task)
    metrics = ("acc", "acc_norm", "acc_bytes") if task.setups == {QUESTION} else ("acc",)
    return {
        "task": task.name,
        **data,
        "test_split": task.split,
        **({"fewshot_split": task.examples.split} if task.examples else {}),
        "output_type": "multiple_choice",
        **wording,
        "doc_to_target": "answer",
        "metric_list": [
            {"metric": name, "aggregation": "mean", "higher_is_better": True} for name in metrics
        ],
        "metadata": {
            "version": VERSION,
            "probe": source.probe,
            "config": task.config,
            "rows_sha256": task.entry.rows_digest,
            "kbprobe_version": kbprobe_version(),
        },
    }


def _check_clozes(task: Task) -> None:
    """Refuse a question that begins with a number and the mask: it would be taken for an index."""
    for question in task.table["question"].unique().to_pylist():
        if question.partition(MASK)[0].isdigit():
            raise UsageError(
                f"The question {question!r} has digits alone before {MASK}, which "
                "lm-evaluation-harness cannot ask. Export to another target, or reword it."
            )


def _notes(tasks: tuple[Task, ...]) -> tuple[str, ...]:
    notes = []
    if any(task.setups == {QUESTION} for task in tasks):
        notes.append(
            "The model reads the question, one space, the choice. `acc` compares log-likelihoods "
            "of the choices, `acc_norm` divides them by characters, `acc_bytes` by bytes: "
            "`evaluate-probe` gives the same figures under the same names, and `acc_norm` is its "
            "accuracy."
        )
    if any(task.setups == {CLOZE} for task in tasks):
        notes.append(
            f"For a cloze the model reads the text before `{MASK}`; each choice, with the rest of "
            "the sentence, is scored after it. `acc` is the accuracy of `evaluate-probe` with a "
            "causal model."
        )
    if len(tasks) > 1:
        notes.append(
            "The group runs the probe and its further configs; it has no score of its own. A "
            "control shows what can be scored without knowing: compare, do not average."
        )
    if all(task.examples for task in tasks):
        split = tasks[0].examples.split if tasks[0].examples else ""
        notes.append(
            f"`--num_fewshot` draws its examples from the split `{split}`. Without it, figures "
            "are equal to those of `evaluate-probe`; with it the two draw different examples."
        )
    return tuple(notes)


TARGET = Target("lm-evaluation-harness", "pip install 'lm_eval[hf]>=0.4.9'", write)
