"""Paths that Arrow is given: it expands some, and must read the file that was checked."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATH_AT = {
    **{name: 0 for name in ("ParquetFile", "read_table", "read_schema", "ParquetWriter")},
    **{"memory_map": 0, "write_table": 1},
}


def test_every_path_for_arrow_is_absolute():
    raw = []
    for package in ("kbprobe", "kb_cache", "builders", "evaluation", "release"):
        for path in (ROOT / package).rglob("*.py"):
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match call:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name("pq" | "pa"), attr=name), args=args
                    ) if name in PATH_AT:
                        given = ast.unparse(args[PATH_AT[name]])
                        if not given.startswith(("plain_path(", "pa.BufferReader(")):
                            raw.append(f"{path.relative_to(ROOT)}:{call.lineno} {name}({given})")
    assert not raw, "wrap these in kbprobe.files.plain_path"
