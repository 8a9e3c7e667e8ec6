"""The papers' items at the end of docs/reproduce.md: none is missing, and what they name exists."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from builders.engine.registry import PROBES
from evaluation.learners.registry import LEARNERS
from evaluation.reproduce.command import PAPERS
from evaluation.scorers.registry import SCORERS
from evaluation.studies.registry import DEFAULT, OWN
from kbprobe.__main__ import COMMANDS
from kbprobe.format.manifest import read_manifest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8").partition("## The papers")[2]
ITEMS = {"O": 59, "W": 43, "K": 41}
STATUSES = ("same", "option", "differs", "people", "left out")

ROWS = re.findall(r"^\| ([OWK]\d+) \| (.+?) \| (.+?) \| (.*?) ?\|$", TEXT, re.M)
"""Id, item, status, and how or what differs."""

SPAN = re.compile(r"`([^`]+)`")
NAMED = re.compile(r"(learner|scorer|config)s? ((?:`\w+`(?:, | and )?)+)")
"""Names of a kind, such as "configs `a` and `b`"."""


def _commands() -> list[tuple[str, str]]:
    """Return the commands of each row, and its bare options as options of the one before them."""
    found: list[tuple[str, str]] = []
    for item, _, _, cell in ROWS:
        command = ""
        for span in SPAN.findall(NAMED.sub("", cell)):
            if not span.startswith("--"):
                command = span
                found.append((item, command))
            else:
                assert command, f"{item}: {span} of which command?"
                # The program and what it takes, without the command's own options.
                found.append((item, f"{command.partition(' --')[0]} {span}"))
    # Each once: the first item is named.
    return [*{command: item for item, command in reversed(found)}.items()]


def test_each_item_is_there_once_and_in_order() -> None:
    assert [row[0] for row in ROWS] == [f"{x}{n}" for x in ITEMS for n in range(1, ITEMS[x] + 1)]


def test_the_summary_counts_the_rows() -> None:
    counts = Counter(status for _, _, status, _ in ROWS)
    assert set(counts) == set(STATUSES)
    stated = re.search(
        r"Of the (\d+) items, (\d+) are the same, (\d+) are options, (\d+) differ, (\d+) need "
        r"people and (\d+) are left out\.",
        " ".join(TEXT.split()),
    )
    assert stated is not None
    assert [int(n) for n in stated.groups()] == [len(ROWS), *(counts[name] for name in STATUSES)]


def test_what_is_done_otherwise_says_how_and_what_is_left_out_says_why() -> None:
    silent = ("same", "left out")
    assert [item for item, _, status, how in ROWS if status not in silent and not how] == []
    reasons = TEXT.partition("### Left out")[2]
    given = {int(n) for part in re.findall(r"\*\* \((K.+?)\)", reasons) for n in _numbers(part)}
    left = [item for item, _, status, _ in ROWS if status == "left out"]
    assert [item for item in left if item[0] == "K" and int(item[1:]) not in given] == []
    assert [item for item in left if item[0] != "K" and f"({item})" not in reasons] == []


def _numbers(part: str) -> list[int]:
    """Read "K26 to K28, K39"."""
    ranges = re.findall(r"K(\d+)(?: to K(\d+))?", part)
    return [n for first, last in ranges for n in range(int(first), int(last or first) + 1)]


def test_learners_scorers_and_configs_that_rows_name_exist() -> None:
    manifests = (ROOT / "tests" / "data" / "manifests").glob("*.json")
    known = {
        "learner": {*LEARNERS.names()},
        "scorer": {*SCORERS.names()},
        "config": {config for path in manifests for config in read_manifest(path).configs},
    }
    named = [(kind, some) for *_, how in ROWS for kind, some in NAMED.findall(how)]
    assert len(named) > 10
    for kind, some in named:
        assert {*SPAN.findall(some)} <= known[kind]


@pytest.mark.parametrize(("command", "item"), _commands())
def test_commands_that_rows_name_exist(
    command: str, item: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = shlex.split(command)
    assert program in COMMANDS, f"{item}: {command}"
    known = {
        "build-probe": PROBES,
        "evaluate-probe": {name for name in OWN if name != DEFAULT} | {"reproduce"},
    }
    if program in known and not words[0].startswith("probes/"):
        assert words[0] in known[program], f"{item}: {command}"
    # The values that are names: parsing them does not look them up.
    for option, names in {
        "reproduce": PAPERS,
        "--learner": LEARNERS.names(),
        "--learners": LEARNERS.names(),
        "--scorer": SCORERS.names(),
    }.items():
        for given in re.findall(rf"{option} (\S+)", command):
            assert {*given.split(",")} <= {*names}, f"{item}: {command}"
    assert {*re.findall(r"\bprobes/(\w+)", command)} <= PROBES.keys(), f"{item}: {command}"
    try:
        # Options are parsed before --help is acted on: unknown ones are an error.
        code = import_module(COMMANDS[program]).main([*words, "--help"])
    except SystemExit as stopped:
        code = stopped.code
    shown = capsys.readouterr()
    assert not code, f"{item}: {command}: {shown.err}"
