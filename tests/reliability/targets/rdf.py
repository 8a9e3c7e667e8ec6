"""N-Triples, compared with pyoxigraph's own parser given one line at a time."""

from __future__ import annotations

import gzip
import zlib
from itertools import islice
from pathlib import Path

from tests.real_data import MINIATURES
from tests.reliability.target import Refused, Target

_LINES = 300
#: Malformed lines that --lenient leaves out, and the share of all lines, whichever is more.
_TOLERATED, _SHARE = 10, 0.5


def _seeds(folder: Path) -> list[Path]:
    with gzip.open(MINIATURES / "wikidata-miniature.nt.gz") as file:
        lines = b"".join(islice(file, _LINES))
    (folder / "packed.nt.gz").write_bytes(gzip.compress(lines, 1))
    (folder / "plain.nt").write_bytes(lines)
    return [folder / "packed.nt.gz", folder / "plain.nt"]


def _read_lenient(path: Path) -> tuple[int, list[str]]:
    from kb_cache.wikidata.kind import RdfFile

    source = RdfFile(path, lenient=True)
    triples = [str(quad) for quad in source.triples()]
    return source.malformed.count, triples


def _read_strict(path: Path) -> list[str]:
    from kb_cache.wikidata.kind import RdfFile

    return [str(quad) for quad in RdfFile(path).triples()]


def _expected_lenient(path: Path) -> tuple[int, list[str]]:
    from pyoxigraph import RdfFormat, parse

    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise Refused(str(error)) from error
    malformed, triples = 0, []
    lines = content.split(b"\n")
    for line in lines:
        try:
            triples += [str(quad) for quad in parse(line, RdfFormat.N_TRIPLES)]
        except SyntaxError:
            malformed += 1
    if malformed > max(_TOLERATED, _SHARE * (len(lines) - 1)):
        raise Refused(f"{malformed} malformed lines")
    return malformed, triples


def _expected_strict(path: Path) -> list[str]:
    malformed, triples = _expected_lenient(path)
    if malformed:
        raise Refused(f"{malformed} malformed lines")
    return triples


TARGETS = [
    Target("n-triples", _seeds, _read_strict, _expected_strict),
    Target("n-triples-lenient", _seeds, _read_lenient, _expected_lenient),
]
