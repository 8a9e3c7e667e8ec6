"""Inspect: a task file that reads flat rows, local or of the published probe."""

from __future__ import annotations

from pathlib import Path

from kbprobe.errors import UsageError
from kbprobe.format.setups import TEST
from release.exports.flat import METADATA, flat_name, flat_table, write_flat
from release.exports.source import ProbeSource, Target, Written, rendered, viewer_configs

FILE = "task.py"


def write(source: ProbeSource, folder: Path, repo_id: str | None) -> Written:
    """Write a task file, and the rows that it reads unless they are on the Hub.

    Raises:
        UsageError: the rows are to be read from the Hub, where only the test split is flat.
    """
    if repo_id and source.split != TEST:
        raise UsageError(
            f"--split {source.split}: published probes have flat rows of the split {TEST} alone. "
            "Leave --repo-id out."
        )
    paths = {
        task: f"{task.folder}data/{task.split}.parquet" for task in source.tasks if not repo_id
    }
    for task, path in paths.items():
        write_flat(iter([flat_table(task.table)]), folder / path)
    shown = [
        {"name": task.name, "place": paths.get(task) or flat_name(task.config)}
        for task in source.tasks
    ]
    text = rendered("targets/inspect.py.j2", tasks=shown, metadata=METADATA, repo_id=repo_id)
    (folder / FILE).write_text(text, encoding="utf-8", newline="\n")
    notes = (
        "The model is shown the question and its choices with letters, and answers with a letter. "
        "That is another measurement than `evaluate-probe`'s, which compares the likelihoods of "
        "the choices: the two accuracies cannot be compared. An answer that names no letter "
        "counts as wrong. `stderr` takes rows about one concept together.",
        "A probe that `release-probe` has published runs without this folder: `inspect eval "
        f"hf/{repo_id or 'USER/NAME'}/{source.tasks[0].name} --model MODEL`, with a standard error "
        "that takes each row by itself.",
    )
    single = f"@{source.tasks[0].name}" if len(source.tasks) == 1 else ""
    command = f"inspect eval {FILE}{single} --model hf/MODEL"
    files = {task: {task.split: path} for task, path in paths.items()}
    return Written((command,), notes, viewer_configs(files))


TARGET = Target("Inspect", "pip install 'inspect-ai>=0.3.200' pyarrow", write)
