"""lighteval: a file of custom tasks."""

from __future__ import annotations

from pathlib import Path

from kbprobe.format.setups import MASK, QUESTION
from release.exports.source import (
    ProbeSource,
    Target,
    Written,
    place_data,
    rendered,
    viewer_configs,
)

VERSION = 1
"""Version of the wording, to be increased when a change affects a task's numbers."""

FILE = "task.py"


def write(source: ProbeSource, folder: Path, repo_id: str | None) -> Written:
    """Write the task file, and the rows unless they are read from the Hub."""
    files = {} if repo_id else {task: place_data(task, source, folder) for task in source.tasks}
    tasks = [
        {
            "name": task.name,
            "config": task.config,
            "split": task.split,
            "examples": None if task.examples is None else task.examples.split,
            "by_length": task.setups == {QUESTION},
        }
        for task in source.tasks
    ]
    text = rendered("targets/lighteval.py.j2", repo_id=repo_id, tasks=tasks, version=VERSION)
    (folder / FILE).write_text(text, encoding="utf-8", newline="\n")
    names = ",".join(f"{task.name}|0" for task in source.tasks)
    model = "model_name=MODEL,override_chat_template=False"
    command = f"lighteval accelerate {model} '{names}' --custom-tasks {FILE}"
    notes = (
        "The model reads the question, one space, the choice; for a cloze, the text before "
        f"`{MASK}`, and each choice with the rest of the sentence is scored after it. `acc` "
        "compares log-likelihoods of the choices, and `acc_norm`, for questions, divides them by "
        "characters, as `evaluate-probe` does.",
        "Where a tokenizer has a chat template lighteval uses it unless told otherwise, as above; "
        "`evaluate-probe` does not unless asked with `--chat`. For equal figures give both the "
        "same `dtype`.",
    )
    return Written((command,), notes, viewer_configs(files))


TARGET = Target("lighteval", "pip install 'lighteval>=0.13'", write)
