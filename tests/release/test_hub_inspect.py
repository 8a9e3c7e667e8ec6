"""Inspect runs a published probe by its ``eval.yaml`` alone, and scores what a model answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.items.sources import open_probe
from release.exports.flat import BLANK
from tests.release.hub_server import HubServer, make_default, publish

REPO = "me/antonyms"
inspect_ai = pytest.importorskip(
    "inspect_ai", reason="running a published probe needs Inspect: pip install inspect-ai"
)


@pytest.fixture
def endpoint(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HubServer:
    """The loopback Hub, which Inspect reads too."""
    make_default(monkeypatch, hub.url, tmp_path / "cache")
    monkeypatch.setenv("INSPECT_DATA_DIR", str(tmp_path / "inspect"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return hub


def test_a_published_probe_runs_by_its_registration(
    endpoint: HubServer, built_probe: Callable[[str], Path], tmp_path: Path
) -> None:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ModelOutput,
        ModelUsage,
        get_model,
    )

    folder = built_probe("antonym_negation")
    publish(endpoint, folder, REPO)
    registered = yaml.safe_load(endpoint.content(REPO, "eval.yaml"))
    configs = ("default", "no_language", "perturbed")
    assert len(registered["tasks"]) == len(configs)
    items = {config: list(open_probe(str(folder), config=config).items) for config in configs}
    # Right in all but every third row, whatever the config.
    letters = {
        "\n".join(
            [
                item.question.replace("[MASK]", BLANK),
                "",
                *(f"{letter}) {text}" for letter, text in zip("AB", item.choices, strict=True)),
            ]
        ): "AB"[item.answer if at % 3 else 1 - item.answer]
        for some in items.values()
        for at, item in enumerate(some)
    }

    def answer(messages: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        (letter,) = {one for text, one in letters.items() if messages[-1].text.endswith(text)}
        said = ChatCompletionChoice(message=ChatMessageAssistant(content=f"ANSWER: {letter}"))
        # Without a usage tokens are counted with a vocabulary that is downloaded.
        return ModelOutput(model="mockllm", choices=[said], usage=ModelUsage())

    logs = inspect_ai.eval(
        f"hf/{REPO}",
        model=get_model("mockllm/model", custom_outputs=answer),
        display="none",
        log_dir=str(tmp_path / "logs"),
    )
    assert [log.status for log in logs] == ["success"] * len(configs)
    for log, task, config in zip(logs, registered["tasks"], configs, strict=True):
        rows = len(items[config])
        assert log.eval.task.endswith(task["id"])
        assert log.results.completed_samples == rows
        right = rows - (rows + 2) // 3
        assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(right / rows)
    (one,) = inspect_ai.eval(
        f"hf/{REPO}/{registered['tasks'][1]['id']}",
        model=get_model("mockllm/model", custom_outputs=answer),
        display="none",
        log_dir=str(tmp_path / "logs"),
    )
    assert one.results.completed_samples == len(items["no_language"])
