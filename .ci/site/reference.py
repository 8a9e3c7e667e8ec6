"""Reference tables, which stand below comments in pages.

    python .ci/site/reference.py

writes those of commands.md again, for clones. The site makes all of them when it is built:

- ``<!-- options: wordnet_hypernymy wordnet_hyponymy -->``: the options of these probes.
- ``<!-- flags: wordnet_hypernymy wordnet_hyponymy -->``: what keeps questions out of the clean
  tier.
- ``<!-- help: evaluate-probe curve -->``: what ``--help-all`` prints for a command.
- ``<!-- fields: evaluation.results.types.Results -->``: the fields of a model.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from builders.engine.probe import find_probe
from kbprobe.__main__ import COMMANDS
from kbprobe.options import command_option
from kbprobe.tables import in_markdown

COMMENT = re.compile(
    r"^<!-- (options|flags|help|fields): (.+) -->$(?:\n\n(?:(?!^<!-- ).*\n)*?<!-- end -->$)?", re.M
)
COMMANDS_PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


def expanded(text: str) -> str:
    """Return a page with its reference tables.

    Raises:
        LookupError: there is no such probe, command or model.
    """
    return COMMENT.sub(lambda found: WRITERS[found[1]](*found[2].split()), text)


def written(text: str) -> str:
    """Return a page with its comments and, below each, its reference table."""

    def table(found: re.Match[str]) -> str:
        body = WRITERS[found[1]](*found[2].split())
        return f"<!-- {found[1]}: {found[2]} -->\n\n{body}\n\n<!-- end -->"

    return COMMENT.sub(table, text)


def options(*probes: str) -> str:
    """Return a table of the options of probes."""
    having: dict[tuple[str, str], list[str]] = {}
    for name in probes:
        for field, info in find_probe(name).options.model_fields.items():
            option = command_option(field, info)
            names = " / ".join(f"`{flag}`" for flag in [*option.opts, *option.secondary_opts])
            having.setdefault((names, in_markdown(option.help or "")), []).append(name)
    return _table_of("option", having, len(probes))


def flags(*probes: str) -> str:
    """Return a table of the flags of probes."""
    having: dict[tuple[str, str], list[str]] = {}
    for name in probes:
        for flag, reason in (find_probe(name).flags or {}).items():
            having.setdefault((f"`{flag}`", in_markdown(reason)), []).append(name)
    return _table_of("flag", having, len(probes))


def _table_of(what: str, having: Mapping[tuple[str, str], list[str]], probes: int) -> str:
    """Return a table; its last column names the probes, where some lack what others have."""
    shared = all(len(names) == probes for names in having.values())
    rows = []
    for cells, names in having.items():
        of = "all" if len(names) == probes else ", ".join(f"`{name}`" for name in names)
        rows.append([*cells] if shared else [*cells, of])
    return _table([what, "meaning"] if shared else [what, "meaning", "probes"], rows)


def help_text(program: str, *words: str) -> str:
    """Return a heading and what a command prints when asked for help, as a block of code."""
    printed = StringIO()
    with redirect_stdout(printed):
        try:
            import_module(COMMANDS[program]).main([*words, "--help-all"])
        except SystemExit as stopped:
            if stopped.code:
                raise LookupError(f"no command: {program} {shlex.join(words)}") from stopped
    name = shlex.join([program, *words])
    if not printed.getvalue().startswith(f"Usage: {name} "):
        # An unknown word is taken for a probe.
        raise LookupError(f"no command: {name}")
    return f"### {name}\n\n```text\n{printed.getvalue().strip()}\n```"


def fields(path: str) -> str:
    """Return a heading, the summary and a table of the fields of a pydantic model."""
    module, _, name = path.rpartition(".")
    model: Any = getattr(import_module(module), name)
    rows = [[f"`{key}`", str(info.description)] for key, info in model.model_fields.items()]
    return f"### {name}\n\n{model.__doc__.splitlines()[0]}\n\n" + _table(["field", "meaning"], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


WRITERS: dict[str, Callable[..., str]] = {
    "options": options,
    "flags": flags,
    "help": help_text,
    "fields": fields,
}


if __name__ == "__main__":
    COMMANDS_PAGE.write_text(written(COMMANDS_PAGE.read_text("utf-8")), "utf-8")
