"""Inspect: a task file, and the ``eval.yaml`` by which a dataset on the Hub is a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbprobe.format.setups import CLOZE, MASK
from release.cards import yaml_text
from release.exports.page import Target, Written, rendered, viewer_configs
from release.exports.source import ProbeSource, Task, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

FILE, REGISTRATION = "task.py", "eval.yaml"
BLANK = "____"
"""What a model that answers in writing is shown for the mask."""

METADATA = ("cluster", "concept", "relation", "hops", "distractor_family", "distractor_hops")
"""Columns that are kept beside the question, for breakdowns."""


def write(source: ProbeSource, folder: Path, repo_id: str | None) -> Written:
    """Write rows, a task file that reads them, and a registration for when they are uploaded.

    The rows have a layout of their own: the registration names columns, and cannot reach into
    the structure in which probes keep their choices.
    """
    paths = {task: f"{task.folder}data/{task.split}.parquet" for task in source.tasks}
    for task, path in paths.items():
        write_parquet(_samples(task), folder / path)
    shown = [{"name": task.name, "path": path} for task, path in paths.items()]
    text = rendered("targets/inspect.py.j2", tasks=shown, metadata=METADATA)
    (folder / FILE).write_text(text, encoding="utf-8", newline="\n")
    fields = ("input", "choices", "target")
    registered = [
        {
            "id": task.name,
            "config": task.config,
            "split": task.split,
            "field_spec": {**{one: one for one in fields}, "metadata": list(METADATA)},
            "solvers": [{"name": "multiple_choice"}],
            "scorers": [{"name": "choice"}],
        }
        for task in source.tasks
    ]
    registration = {
        "name": source.probe,
        "description": source.manifest.about,
        "evaluation_framework": "inspect-ai",
        "tasks": registered,
    }
    (folder / REGISTRATION).write_text(yaml_text(registration), encoding="utf-8", newline="\n")
    place, first = repo_id or "USER/NAME", source.tasks[0].name
    single = len(paths) == 1
    notes = (
        "The model is shown the question and its choices with letters, and answers with a letter. "
        "That is another measurement than `evaluate-probe`'s, which compares the likelihoods of "
        "the choices: the two accuracies cannot be compared. An answer that names no letter "
        "counts as wrong. `stderr` takes rows about one concept together.",
        f"Once this folder is a dataset on the Hub (`hf upload {place} . --repo-type dataset`), "
        f"`{REGISTRATION}` makes it a task without any code: "
        f"`inspect eval hf/{place}{'' if single else f'/{first}'} --model MODEL`.",
    )
    command = f"inspect eval {FILE}{f'@{first}' if single else ''} --model hf/MODEL"
    files = {task: {task.split: path} for task, path in paths.items()}
    return Written((command,), notes, {"configs": viewer_configs(files)})


def _samples(task: Task) -> pa.Table:
    """Return the rows as Inspect's samples: input, choices, target and metadata."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = task.table
    filled = pc.replace_substring(table["question"], MASK, BLANK)
    choices = table["choices"].combine_chunks()
    labels = pc.struct_field(choices, "label").to_pylist()
    target = [own[at] for own, at in zip(labels, table["answer"].to_pylist(), strict=True)]
    columns = {
        "id": table["id"],
        "input": pc.if_else(pc.equal(table["setup"], CLOZE), filled, table["question"]),
        "choices": pc.struct_field(choices, "text"),
        "target": pa.array(target, pa.string()),
        **{name: table[name] for name in METADATA},
    }
    return pa.table(columns)


TARGET = Target("Inspect", "pip install 'inspect-ai>=0.3.200' pyarrow", write)
