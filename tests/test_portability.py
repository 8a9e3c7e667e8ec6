"""What would differ between systems: bytes of the files written, encodings, pinned versions."""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kbprobe.cli import run

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("kbprobe", "kb_cache", "templates", "builders", "evaluation", "release")


def text_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield the calls that read or write text files, with the name called and the file's mode."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in ("read_text", "write_text"):
            yield node, function.attr, "r" if function.attr == "read_text" else "w"
        elif isinstance(function, ast.Attribute) and function.attr == "open" and node.args:
            yield from ((node, "open", mode) for mode in modes(node, 0))
        elif isinstance(function, ast.Name) and function.id == "open":
            yield from ((node, "open", mode) for mode in modes(node, 1))


def modes(call: ast.Call, at: int) -> Iterator[str]:
    """Yield the mode of a call that opens a text file; nothing where it opens another."""
    mode = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    given = (mode or call.args[at : at + 1] or [ast.Constant("r")])[0]
    # Tarfile and zipfile members are opened by name, not by mode.
    value = given.value if isinstance(given, ast.Constant) else None
    if isinstance(value, str) and value and set(value) <= set("rwxat+"):
        yield value


@pytest.mark.slow
def test_text_files_state_their_encoding_and_are_the_same_bytes_on_every_system() -> None:
    wrong = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for call, name, mode in text_calls(tree):
                given = {keyword.arg for keyword in call.keywords}
                if name != "open" and len(call.args) > (name == "write_text"):
                    given.add("encoding")  # by position
                needed = {"encoding"} | ({"newline"} if set(mode) & set("wxa+") else set())
                if missing := needed - given:
                    place = f"{path.relative_to(ROOT).as_posix()}:{call.lineno}"
                    wrong.append(f"{place} {name} without {', '.join(sorted(missing))}")
    assert wrong == []


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_that_the_terminal_cannot_show_is_no_failure(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def show() -> None:
        print("accuracy 50.0 ±1.2 → 3")  # as rich does; click itself falls back to UTF-8
        print("ə", file=sys.stderr)

    output, errors = (
        io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2)
    )
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", errors)
    assert run(show, [], "show") == 0
    written = output.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert written.startswith("accuracy 50.0 ")
    assert written.rstrip().endswith("\\u2192 3")
    assert errors.buffer.getvalue() == b"\\u0259\n"  # type: ignore[attr-defined]
