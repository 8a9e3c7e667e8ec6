"""Help of the four commands: short enough to be read, in sections, and without gaps."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner

from builders.cli import build_command
from builders.engine.listing import listed_probes
from builders.engine.registry import (
    CONCEPTNET,
    CORPUS,
    GCIDE,
    NONE,
    OWN_FILES,
    PROBES,
    WIKIDATA,
    WORDNET,
)
from evaluation.cli import _EvaluateProgram as EvaluateProbe
from evaluation.cli import study_command
from evaluation.studies.registry import STUDIES
from kbprobe.cli import Command, Option
from release.cli import publish

SCREENS = 100
"""Lines of help that a person reads."""

OVERVIEW = 45
"""The same of a help that only names its options, without what it lists."""


def evaluate_probe() -> Command:
    program = EvaluateProbe()
    command = program._study_of(["--help"])
    command.subcommands = program.listed()
    return command


def shown(command: Command, flag: str = "--help") -> str:
    done = CliRunner().invoke(command, [flag], terminal_width=100)
    assert done.exit_code == 0
    return done.output


COMMANDS: dict[str, Callable[[], Command]] = {
    "evaluate-probe": evaluate_probe,
    "build-probe": lambda: build_command({}),
    "build-probe wordnet_hypernymy": lambda: build_command(
        {"wordnet_hypernymy": PROBES["wordnet_hypernymy"]}
    ),
    "release-probe": lambda: publish,
    **{
        f"evaluate-probe {name}": lambda name=name: study_command(STUDIES.get(name))
        for name in STUDIES.names()
    },
}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_short_and_all_of_it_is_there_on_request(name: str) -> None:
    command = COMMANDS[name]()
    short, whole = shown(command), shown(command, "--help-all")
    listed = sum(map(len, (command.listed | command.subcommands).values()))
    most = OVERVIEW + listed if command.described else SCREENS
    assert len(short.splitlines()) <= most
    examples = [line for line in short.splitlines() if re.match(r"  [a-z]+-probe ", line)]
    assert max(map(len, examples), default=0) <= 80, "texts are wrapped, examples are not"
    assert len(whole.splitlines()) >= len(short.splitlines())
    for option in command.params:
        if isinstance(option, click.Option):
            start = rf"{option.opts[-1]}(?![\w-])"
            line = re.compile(rf"^  (-\w, )?{start}", re.MULTILINE)
            named = re.compile(rf"  (-\w/)?{start}") if command.described else line
            assert line.search(whole), option.opts
            rare = isinstance(option, Option) and option.rare
            assert (named.search(short) is None) == rare, option.opts


def test_evaluate_probe_lists_its_commands_with_a_sentence_and_examples() -> None:
    text, program = shown(evaluate_probe()), EvaluateProbe()
    for name, listed in program.subcommands.items():
        assert f"  {name} " in text
        assert " ".join(listed.sentence.split()) in " ".join(text.split())
        with click.Context(program) as context:
            command = program.get_command(context, name)
        assert command is not None
        assert command.name == name
    assert text.count("  evaluate-probe ") >= 3
    assert "Options (described by evaluate-probe zero_shot --help):" in text
    sections = re.findall(r"^  (\w+)", text.partition("(described by")[2], re.MULTILINE)
    assert sections == ["Probe", "Model", "Scoring", "Training", "Endpoint", "Output"]


ASKED = (
    "builders --help",
    "builders list",
    "evaluation --help",
    "kb_cache --help",
    "release check -h",
)
HEAVY = {
    *("datasets", "inflect", "jinja2", "nltk", "pandas", "pyarrow", "rich", "scipy", "torch"),
    *("transformers", "yaml", "evaluation.results.types", "kbprobe.format.manifest"),
}


def test_help_and_lists_load_nothing_heavy() -> None:
    """They answer at once; one process asks for all, and has what any of them imports."""
    program = f"""
import sys
from importlib import import_module
for words in {ASKED}:
    package, *words = words.split()
    try:
        import_module(f"{{package}}.cli").main(words)
    except SystemExit:
        pass
print(sorted({HEAVY} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.count("Usage: ") == len(ASKED) - 1, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_probes_are_listed_under_what_they_are_built_from() -> None:
    kinds = {
        WORDNET: "wordnet",
        CONCEPTNET: "conceptnet",
        WIKIDATA: "wikidata",
        GCIDE: "gcide",
        CORPUS: "corpus",
    }
    for probe in listed_probes():
        if probe.name in PROBES.keys() - set(OWN_FILES):
            source = PROBES[probe.name].source
            assert (source == NONE) == (not probe.needs)
            assert source == NONE or kinds[source] in probe.needs
