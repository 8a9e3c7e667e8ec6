"""Reference tables, which stand below comments in pages.

    python .ci/site/reference.py

writes them again. The site makes them anew when it is built:

- ``<!-- options: wordnet_hypernymy wordnet_hyponymy -->``: the options of these probes.
- ``<!-- flags: wordnet_hypernymy wordnet_hyponymy -->``: what keeps questions out of the clean
  tier.
- ``<!-- help: evaluate-probe curve -->``: what ``--help-all`` prints for a command.
- ``<!-- fields: evaluation.results.types.Results -->``: the fields of a model.
- ``<!-- ::: builders.build as kbprobe.build -->``: signature and summary of an object, headed by
  that name. On the site, ``hooks.py`` has its whole docstring in place of these.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import textwrap
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

_BODY = r"(?:\n\n(?:(?!^<!-- ).*\n)*?<!-- end -->$)?"
LONGEST_LINE = 96

COMMENT = re.compile(rf"^<!-- (options|flags|help|fields): (.+) -->${_BODY}", re.M)
OBJECT = re.compile(rf"^<!-- ::: ([\w.]+)(?: as ([\w.]+))? -->${_BODY}", re.M)
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?([\w.]+)`")
DOCS = Path(__file__).resolve().parents[2] / "docs"


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

    return OBJECT.sub(_documented, COMMENT.sub(table, text))


def _documented(found: re.Match[str]) -> str:
    path, name = found.groups()
    first = found[0].partition("\n")[0]
    return f"{first}\n\n{documentation(path, name or path)}\n\n<!-- end -->"


def documentation(path: str, name: str) -> str:
    """Return a heading, the signature and the first paragraph of the docstring of an object."""
    module, _, attribute = path.rpartition(".")
    documented: Any = getattr(import_module(module), attribute)
    summary = ROLE.sub(r"`\1`", inspect.getdoc(documented).split("\n\n")[0])
    signature = _signature(inspect.unwrap(documented), name.rpartition(".")[2])
    return f"### {name}\n\n```python\n{signature}\n```\n\n{summary}"


def _signature(documented: Any, name: str) -> str:
    """Return the first lines of a function, or of a class with its fields, as they are written."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(documented))).body
    node.decorator_list, node.name = [], name
    lines = [line for line in node.body if isinstance(line, ast.AnnAssign)]
    if isinstance(node, ast.ClassDef):
        made = [line for line in node.body if getattr(line, "name", "") == "__init__"]
        lines = [*lines, *made]
    else:
        lines = []
    for line in lines:
        if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Call):
            line.value = None  # how a field is checked and described
        elif isinstance(line, ast.FunctionDef):
            line.body = [ast.Expr(ast.Constant(...))]
    node.body = lines or [ast.Expr(ast.Constant(...))]
    return "\n".join(_wrapped(line) for line in ast.unparse(node).splitlines() if line)


def _wrapped(line: str) -> str:
    """Return a long first line of a function with each of its parameters on a line of its own."""
    if len(line) <= LONGEST_LINE or not line.lstrip().startswith("def "):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    (node,) = ast.parse(f"{line.strip()} ...").body
    assert isinstance(node, ast.FunctionDef)
    start, returns = line[: line.index("(") + 1], line[line.rindex(")") :]
    arguments = ast.unparse(node.args)
    parts, depth = [""], 0
    for letter in arguments:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    listed = "".join(f"{indent}    {part.strip()},\n" for part in parts)
    return f"{start}\n{listed}{indent}{returns}"


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
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(written(page.read_text("utf-8")), "utf-8")
