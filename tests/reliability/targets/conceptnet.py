"""ConceptNet: the 5.7 dump, compared with a reader of the rules in docs/knowledge-bases.md."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from itertools import islice
from pathlib import Path
from typing import Any

from tests.real_data import MINIATURES
from tests.reliability.target import Refused, Target

_SAMPLE = Path(__file__).parents[2] / "kb_cache" / "data" / "conceptnet-mini.csv"
#: Lines of the real dump that a mutation works on.
_LINES = 300
#: Malformed lines that are left out, and the share of all lines, whichever is more.
_TOLERATED, _SHARE = 10, 0.01
#: Bytes by whose whole lines a dump is recognised.
_HEAD = 1 << 16
_LONGEST = 16 << 20
_CONCEPT = re.compile(r"/c/[^/]+/[^/].*", re.DOTALL)

Row = tuple[Any, ...]


def _seeds(folder: Path) -> list[Path]:
    with gzip.open(MINIATURES / "conceptnet-miniature.csv.gz") as file:
        lines = b"".join(islice(file, _LINES))
    (folder / "packed.csv.gz").write_bytes(gzip.compress(lines, 1))
    (folder / "plain.csv").write_bytes(_SAMPLE.read_bytes())
    return [folder / "packed.csv.gz", folder / "plain.csv"]


def _read(path: Path) -> tuple[int, list[Row]]:
    """Read a dump's English edges, and compile them; return the malformed lines' number as well."""
    from kb_cache.conceptnet.filter import compile_edges
    from kb_cache.conceptnet.source import read_edges
    from kb_cache.conceptnet.types import Malformed, Selection

    malformed = Malformed(path)
    batches = list(read_edges(path, Selection(), malformed))
    if any(batch.num_rows for batch in batches):
        compile_edges(batches)
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return malformed.count, rows


def _expected(path: Path) -> tuple[int, list[Row]]:
    """Read the same, a line at a time."""
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise Refused(str(error)) from error
    if content.startswith(b"BZh"):
        raise Refused("bzip2 that is none")
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    head = content[:_HEAD].split(b"\n")
    whole = head[:-1] if len(head) > 1 else head
    first = [line.split(b"\t") for line in whole[: 2 * _TOLERATED + 1]]
    recognised = sum(len(line) == 5 and line[1].startswith(b"/r/") for line in first)
    if recognised * 2 <= len(first):
        raise Refused("most of the first lines are none of a dump")
    found = [_edge(line) for line in lines]
    if any(len(line) > _LONGEST for line in lines):
        raise Refused("a line of more than 16 MiB")
    malformed = sum(edge is None for edge in found)
    if malformed > max(_TOLERATED, _SHARE * len(lines)):
        raise Refused(f"{malformed} malformed lines")
    return malformed, [edge for edge in found if edge]


def _edge(line: bytes) -> Row | None:
    """The edge of a line, () if it is not wanted, None if it is malformed."""
    columns = line.split(b"\t")
    if len(columns) != 5 or not columns[1].startswith(b"/r/") or not columns[2].startswith(b"/c/"):
        return None
    if not all(end.startswith(b"/c/en/") for end in columns[2:4]):
        return ()
    try:
        relation, start, end, info = (column.decode() for column in columns[1:])
        said = json.loads(info)
        weight, dataset, surface = (said.get(k) for k in ("weight", "dataset", "surfaceText"))
        for text in (dataset, surface):
            (text or "").encode()
    except (ValueError, AttributeError, RecursionError):
        return None
    if not _CONCEPT.fullmatch(start) or not _CONCEPT.fullmatch(end):
        return None
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return None
    try:
        weight = float(weight)
    except OverflowError:
        return None
    if not math.isfinite(weight):
        return None
    return relation[3:], start.rstrip("/"), end.rstrip("/"), weight, dataset, surface


TARGETS = [Target("conceptnet", _seeds, _read, _expected)]
