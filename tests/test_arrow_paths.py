"""Paths that Arrow is given: it expands some, and must read the file that was checked."""

import ast
import os
from pathlib import Path

import pytest

from kbprobe.errors import UsageError
from kbprobe.files import plain_path

ROOT = Path(__file__).parents[1]
MODULES = ("pq", "pa", "pa.csv", "pa.json", "np")
READING = (
    "ParquetFile",
    "read_table",
    "read_schema",
    "memory_map",
    "read_csv",
    "read_json",
    "load",
)
READ = dict.fromkeys(READING, 0)
WRITE = {"ParquetWriter": 0, "write_table": 1}


def test_every_path_for_arrow_is_absolute_and_what_is_read_is_a_regular_file() -> None:
    raw = []
    for package in ("kbprobe", "kb_cache", "builders", "evaluation", "release"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not any(f".{name}(" in text for name in READ | WRITE):
                continue
            for call in ast.walk(ast.parse(text)):
                match call:
                    case ast.Call(func=ast.Attribute(value=on, attr=name), args=args) if (
                        name in READ | WRITE and ast.unparse(on) in MODULES
                    ):
                        given = ast.unparse(args[(READ | WRITE)[name]])
                        wrap = "regular_path(" if name in READ else "plain_path("
                        if not given.startswith((wrap, "pa.BufferReader(")):
                            raw.append(f"{path.relative_to(ROOT)}:{call.lineno} {name}({given})")
    assert not raw, "wrap these in kbprobe.files.regular_path, or plain_path to write"


DATASETS = (
    *("load_dataset", "load_dataset_builder", "get_dataset_config_names", "load_from_disk"),
    *("from_json", "from_parquet", "from_csv", "from_text", "from_file", "save_to_disk"),
)
"""Functions and methods of datasets that read files, or write them."""


def test_datasets_is_given_only_paths_that_are_absolute() -> None:
    """Each call, and each name bound to one, is of a function that makes its paths absolute."""
    calling = []
    for package in ("kbprobe", "kb_cache", "builders", "evaluation", "release"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not any(name in text for name in DATASETS):
                continue
            tree = ast.parse(text)
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            for function in functions:
                names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
                for node in ast.walk(function):
                    name = getattr(node, "attr", getattr(node, "id", ""))
                    reads = name in DATASETS and isinstance(node, ast.Attribute | ast.Name)
                    if reads and not names & {"plain_path", "regular_path"}:
                        calling.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert not calling, "wrap what these are given in kbprobe.files.plain_path or regular_path"


@pytest.mark.posix
def test_a_path_that_arrow_cannot_encode_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"caf.*is not valid UTF-8 as this process reads it"):
        plain_path(os.fsdecode(b"caf\xe9"))
