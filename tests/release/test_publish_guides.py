"""The guides of publishing and exporting, followed: each of their commands, in their order."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from kbprobe.__main__ import COMMANDS
from kbprobe.format.manifest import read_manifest
from tests.evaluation.saved_runs import save_run
from tests.release.hub_server import TOKEN, HubServer, make_default
from tests.test_docs import ROOT, our_commands

PROBES = ("antonym_negation", "wordnet_hypernymy")


@pytest.mark.slow
def test_every_command_of_the_guides_runs(
    hub: HubServer,
    built_probe: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_default(monkeypatch, hub.url, tmp_path / "cache")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    hub.put("you/tiny", {"README.md": b"# Tiny\n"})
    (tmp_path / "probes").mkdir()
    for name in PROBES:
        (tmp_path / "probes" / name).symlink_to(built_probe(name), target_is_directory=True)
        request = read_manifest(built_probe(name)).content["request"]
        folder = tmp_path / "results" / name / "tiny"
        save_run(folder, "you/tiny", [0, 1], probe=name, request=request)
    done = 0
    for page in ("publish-hub.md", "publish-exports.md"):
        for program, *words in our_commands(ROOT / "docs" / page):
            try:
                code = import_module(COMMANDS[program]).main(words)
            except SystemExit as ended:
                code = ended.code
            assert not code, f"{page}: {program} {' '.join(words)}: {capsys.readouterr().err}"
            done += 1
    assert done == 13
    registered = yaml.safe_load(hub.content("me/antonyms", "eval.yaml"))
    tasks = {task["id"] for task in registered["tasks"]}
    held = Path("exports/results-hub/.eval_results/me--antonyms.yaml").read_text()
    results = yaml.safe_load(held)
    named = [one["dataset"]["task_id"] for one in results]
    assert named == ["kbprobe_antonym_negation", "kbprobe_wordnet_hypernymy_hypernyms"]
    assert tasks > set(named)
    assert list(hub.repos["you/tiny"].pulls) == ["refs/pr/1"]
    assert {path.name for path in Path("exports").iterdir()} == {
        "wordnet_hypernymy-lm-eval",
        "antonym_negation-lighteval",
        "results-hub",
        "results-every-eval-ever",
    }
