"""Seeded mutations of files: bytes, lines, JSON and YAML values, cells and Parquet columns.

A mutation takes the content of a file and returns damaged content. Which ones apply follows from
the file's name; a compressed file is mutated inside most of the time, and as it is otherwise.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import PurePath
from random import Random
from typing import Any

Mutator = Callable[[bytes, Random], bytes]

#: Pieces of text that parsers stumble over.
_ODD = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3\x28", b"\xed\xa0\x80", "\u2028".encode(),
    "\u0085".encode(), b"\r", b"\r\n", b"\x1e", b"\x0c", b"\t", b"\t\t", b" ", b'"', b"'", b"\\",
    b"\\u", b"\\ud800", b"<", b">", b"&", b"<!--", b"{{", b"{%", b"#", b"=", b"@", b"-", b"%s",
    b"NaN", b"Infinity", b"9" * 400, b"-9.9e-9999", b"1e999", b"-1", b"2024-02-30", b"null",
    b"true", b"[", b"]", b"{", b"}",
    b",", b":", b"/", b"..", b"../", b"!!python/object", b"*a", b"&a", b"<<", b"|", b"_",
    "\u00b2".encode(), "\u0663".encode(), "\u202e".encode(),
    "e\u0301".encode(), "\U0001f600".encode(),
)  # fmt: skip
#: Share of the mutations of a compressed file that are made in its content.
_INSIDE = 0.8
#: Digits of a number that Python's own parser of integers refuses.
_DIGITS = 5_000
_DEEP = 50_000
#: Bytes of a line that is made very long.
_LONGEST = 50_000_000


def mutate(name: str, content: bytes, random: Random) -> bytes:
    """Return a file's content with one to three mutations, given its name."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = _mutate_once(name, content, random)
    return content


def _mutate_once(name: str, content: bytes, random: Random) -> bytes:
    stem, suffix = PurePath(name).stem, PurePath(name).suffix.lower()
    if suffix in (".gz", ".bz2") and random.random() < _INSIDE:
        try:
            inside = gzip.decompress(content) if suffix == ".gz" else bz2.decompress(content)
        except (OSError, EOFError, zlib.error):  # damaged by an earlier mutation
            return _bytes(content, random)
        changed = _mutate_once(stem, inside, random)
        return gzip.compress(changed, 1) if suffix == ".gz" else bz2.compress(changed, 1)
    if suffix == ".zip" and random.random() < _INSIDE:
        return _member(content, random)
    mutators = _MUTATORS.get(suffix, (_bytes, _lines))
    return random.choice(mutators)(content, random)


def _bytes(content: bytes, random: Random) -> bytes:
    """Damage some bytes, wherever they are."""
    at = random.randrange(len(content) + 1)
    end = min(len(content), at + random.choice((1, 1, 2, 8, 64, 1024)))
    kind = random.randrange(9)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + content[end:]
    if kind == 2:
        return content[:at] + random.randbytes(end - at) + content[end:]
    if kind == 3:
        return content[:at] + content[at:end] * 2 + content[end:]
    if kind == 4 and at < len(content):
        return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]
    if kind == 5 and random.random() < 0.1:
        return random.choice((b"", b"\n", b"\x00" * 4096, b"\xff" * 64, random.randbytes(512)))
    if kind == 6 and random.random() < 0.1:
        return (
            content[:at] + random.choice((b"a", b" ", b"(", b"[", b"9")) * 3_000_000 + content[at:]
        )
    return content[:at] + random.choice(_ODD) + content[at:]


def _lines(content: bytes, random: Random) -> bytes:
    """Delete, repeat, swap, join or lengthen lines, or change a field of one."""
    lines = content.split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(10)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines[at:at] = [lines[at]] * random.choice((1, 2, 20))
    elif kind == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3 and at + 1 < len(lines):
        lines[at : at + 2] = [lines[at] + lines[at + 1]]
    elif kind == 4:
        times = random.choice((2, 50, 5_000))
        lines[at] = lines[at] * min(times, _LONGEST // (len(lines[at]) + 1) + 1)
    elif kind == 5:
        lines[at] = lines[at] + b"\r"
    elif kind == 6:
        lines[at] = random.choice(_ODD) + lines[at]
    elif kind == 7:
        lines.insert(at, b"")
    else:
        lines[at] = _field(lines[at], lines[other], random)
    return b"\n".join(lines)


def _field(line: bytes, other: bytes, random: Random) -> bytes:
    """Delete, empty, replace or damage a field of a line; its separator is the commonest."""
    separator = max((b"\t", b",", b" ", b"|"), key=line.count)
    fields, others = line.split(separator), other.split(separator)
    at = random.randrange(len(fields))
    kind = random.randrange(5)
    if kind == 0:
        del fields[at]
    elif kind == 1:
        fields[at] = b""
    elif kind == 2:
        fields[at] = random.choice(others)
    elif kind == 3:
        fields.insert(at, random.choice(_ODD))
    elif fields[at].startswith(b"{"):
        fields[at] = _json(fields[at], random).replace(b"\n", b" ")
    else:
        fields[at] = _bytes(fields[at], random)
    return separator.join(fields)


def _other_value(random: Random) -> Any:
    """A value that is of another type than expected, or out of every range."""
    return random.choice((
        None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 1.5, 1e308, float("nan"),
        float("inf"), "", " ", "x", "a\nb", "\x00", "\ud800", "1", "x" * 100_000, [], {}, [[]],
        [None], {"": None}, ["x", 1], {"x": {"y": []}}, "../../x", "/etc/passwd", "-", "=1+1",
    ))  # fmt: skip


def _change_value(value: Any, random: Random) -> Any:
    """Change one place of a nested value: delete, replace, repeat or rename it."""
    parents = [place for place in _containers(value) if place]
    if not parents or random.random() < 0.03:
        return _other_value(random)
    parent = random.choice(parents)
    key = random.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    kind = random.randrange(8)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        parent[key] = [parent[key]]
    elif kind == 2:
        donor = random.choice(parents)
        parent[key] = random.choice(list(donor.values()) if isinstance(donor, dict) else donor)
    elif kind == 3 and isinstance(parent, dict):
        parent[random.choice(("", "x", "unknown", "\x00", f"{key} ", str(key) * 2))] = parent[key]
    elif kind == 4 and isinstance(parent, list):
        parent.insert(random.randrange(len(parent) + 1), parent[key])
    elif kind == 5 and isinstance(parent[key], int | float):
        number = parent[key]
        parent[key] = random.choice((-number, number + 1, number * 10**6, str(number)))
    else:
        parent[key] = _other_value(random)
    return value


def _containers(value: Any) -> list[Any]:
    """All lists and mappings within a value, itself included; aliases of YAML can make circles."""
    found, waiting, seen = [], [value], set[int]()
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict | list) and id(at) not in seen:
            found.append(at)
            seen.add(id(at))
            waiting += at.values() if isinstance(at, dict) else at
    return found


def _json(content: bytes, random: Random) -> bytes:
    """Change a value of a JSON text, or write it in a way that parsers stumble over."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):  # damaged by an earlier mutation
        return _bytes(content, random)
    # A copy of a container within itself would have no end.
    text = json.dumps(json.loads(content)) if random.random() < 0.1 else ""
    if not text:
        try:
            text = json.dumps(_change_value(value, random))
        except ValueError:
            text = json.dumps(json.loads(content))
        if random.random() < 0.9:
            return text.encode("utf-8", "surrogatepass")
    at = random.choice([i for i, c in enumerate(text) if c in ":[,{"] or [0]) + 1
    odd = random.choice((
        "[" * _DEEP, "[" * _DEEP + "]" * _DEEP + ",", '{"a":' * _DEEP, "9" * _DIGITS,
        "9" * _DIGITS + ",", "1e99999,", "-0,", '"a":1,"a":2,', "/* */", "NaN,", '"\\ud800",',
    ))  # fmt: skip
    return (text[:at] + odd + text[at:]).encode("utf-8", "surrogatepass")


def _json_line(content: bytes, random: Random) -> bytes:
    """Change a value of one line of JSON lines."""
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = _json(lines[at], random)
    return b"\n".join(lines)


def _yaml(content: bytes, random: Random) -> bytes:
    """Change a value of a YAML text, or add what only YAML has: anchors, merges, tags, dates."""
    import yaml

    try:
        value = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        changed = _change_value(value, random)
        if random.random() < 0.7:
            dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
            return str(yaml.dump(changed, Dumper=dumper, sort_keys=False)).encode()
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError):
        return _bytes(content, random)
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    odd = random.choice((
        bomb, "<<: *a\n", "a: &a [*a]\n", "!!python/object/apply:os.getcwd []\n", "? [a]\n: b\n",
        "2024-02-30: x\n", "when: 2024-02-30\n", f"n: {'9' * _DIGITS}\n", "x: 1e999\n", "---\n",
        "x: " + "[" * 3_000 + "\n", "x: " + "{a: " * 3_000 + "\n", "x: !!binary ====\n",
        "x: 0o9\n", "x: 190:20:30\n", "? ? ? x\n", "%YAML 9.9\n", "x: !!timestamp x\n",
    ))  # fmt: skip
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    lines.insert(random.choice((0, len(lines), random.randrange(len(lines) + 1))), odd)
    return "".join(lines).encode("utf-8", "surrogatepass")


def _member(content: bytes, random: Random) -> bytes:
    """Change a member of a zip: its content, its name, or whether it is there."""
    changed = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, NotImplementedError, RuntimeError):
        return _bytes(content, random)
    if not files:
        return _bytes(content, random)
    at = random.randrange(len(files))
    name, inside = files[at]
    kind = random.randrange(8)
    if kind == 0:
        del files[at]
    elif kind == 1:
        files[at] = (
            random.choice((f"../{name}", f"/{name}", f"x/{name}", "x", f"{name}.x")),
            inside,
        )
    else:
        files[at] = (name, _mutate_once(name, inside, random))
    with zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, inside in files:
            archive.writestr(name, inside)
    return changed.getvalue()


def _parquet(content: bytes, random: Random) -> bytes:
    """Change the columns of a Parquet file: drop, rename, retype, empty or shuffle one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
        names = table.schema.names
    except (pa.ArrowException, OSError, ValueError):  # damaged by an earlier mutation
        return _bytes(content, random)
    if not names:
        return _bytes(content, random)
    at = random.randrange(len(names))
    name, column = names[at], table.column(at)
    rows = list(range(table.num_rows))
    kind = random.randrange(7)
    if kind == 0:
        table = table.remove_column(at)
    elif kind == 1:
        table = table.rename_columns(
            [random.choice(("", "x", f"{n} ", n)) if n == name else n for n in table.schema.names]
        )
    elif kind == 2:
        other = random.choice((
            pa.nulls(len(rows)), pa.nulls(len(rows), column.type), pa.array(rows),
            pa.array([random.choice(("", "x", "\x00", "-1", "A")) for _ in rows]),
            pa.array([float("nan")] * len(rows)), pa.array([[row] for row in rows]),
            pa.array([{"x": row} for row in rows], pa.struct([("x", pa.int64())])),
        ))  # fmt: skip
        table = table.set_column(at, name, other)
    elif kind == 3:
        values = column.to_pylist()
        if values:
            place = random.randrange(len(values))
            values[place] = _change_value(values[place], random)
        try:
            table = table.set_column(at, name, pa.array(values, column.type))
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            table = table.set_column(at, name, pa.nulls(len(rows), column.type))
    elif kind == 4 and rows:
        random.shuffle(rows)
        table = table.set_column(at, name, column.take(pa.array(rows)))
    elif kind == 5:
        table = table.slice(0, random.choice((0, 1, len(rows) // 2)))
    else:
        table = pa.concat_tables([table, table.slice(0, 1)])
    written = io.BytesIO()
    metadata = table.schema.metadata if random.random() < 0.5 else None
    pq.write_table(table.replace_schema_metadata(metadata), written)
    return written.getvalue()


_TEXT: Sequence[Mutator] = (_bytes, _lines)
_MUTATORS: dict[str, Sequence[Mutator]] = {
    ".json": (_bytes, _lines, _json, _json, _json),
    ".jsonl": (_bytes, _lines, _json_line, _json_line),
    ".yaml": (_bytes, _lines, _yaml, _yaml, _yaml),
    ".yml": (_bytes, _lines, _yaml, _yaml, _yaml),
    ".parquet": (_bytes, _parquet, _parquet, _parquet),
    ".gz": (_bytes,),
    ".bz2": (_bytes,),
    ".zip": (_bytes,),
}
