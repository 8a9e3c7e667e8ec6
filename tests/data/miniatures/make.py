"""Make the miniature knowledge bases of this folder out of real lines of larger ones.

    python tests/data/miniatures/make.py conceptnet assertions_en.csv.gz
    python tests/data/miniatures/make.py wikidata wikidata_sample.nt.gz

Every line is copied as it is. The output depends on the input alone, whatever the machine.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

# ---- ConceptNet

CONCEPTS = 1200
"""Concepts that are kept: those of which most is said."""

ALL_KEPT = ("HasA",)
"""Relations of which light edges are kept too, between single words; and so are all negations."""

LEAST_WEIGHT = (2.0, 4.0)
"""Least weight of the other edges: between single words, and where an end has two words. Edges with
longer ends are left out."""

TOO_GENERAL = frozenset(
    ("person", "something", "human", "child", "man", "woman", "people", "thing")
)
"""Concepts of which so much is said that they would fill the file."""


def conceptnet(lines: Iterable[str]) -> Iterator[str]:
    """Yield the edges that leave the concepts of which most is said, sorted."""
    edges = [edge for edge in (line.rstrip("\n").split("\t") for line in lines) if _is_told(*edge)]
    said = Counter(start for _, _, start, _, _ in edges)
    kept = set(sorted(said, key=lambda concept: (-said[concept], concept))[:CONCEPTS])
    for edge in sorted(edges):
        if edge[2] in kept:
            yield "\t".join(edge) + "\n"


def _is_told(uri: str, relation: str, start: str, end: str, about: str) -> bool:
    """Tell whether an edge is said by enough people, of ends that are short enough."""
    spaces = max(start.count("_"), end.count("_"))
    if spaces > 1 or start.removeprefix("/c/en/") in TOO_GENERAL:
        return False
    name = relation.removeprefix("/r/")
    if name.startswith("Not") or (name in ALL_KEPT and not spaces):
        return True
    return bool(json.loads(about)["weight"] >= LEAST_WEIGHT[spaces])


# ---- Wikidata

ENTITY = "http://www.wikidata.org/entity/"
DIRECT = "http://www.wikidata.org/prop/direct/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

PATHS: Mapping[tuple[str, ...], int] = {
    ("P463 ^P527", "P571 P2031"): 1,
    ("P161", "P26 ^P26"): 2,
    ("^P112", "P159", "P17"): 1,
    ("P57", "P27"): 1,
    ("P69", "P571"): 5,
    ("P57", "P69", "P571"): 1,
}
"""Paths of encyclopedic_composition, and what share of their first entities is kept: one in so
many. A hop is one of several properties; ``^`` is followed backwards."""

FIRST = (f"<{ENTITY}Q5>", f"<{ENTITY}Q11424>")
"""A path begins with a human or a film."""

DESCRIBE = (
    *("P31", "P21", "P569", "P570", "P17", "P27"),
    *("P19", "P106", "P108", "P170", "P449", "P451", "P495", "P580", "P582", "P740", "P1619"),
)
"""What is told of every entity that is kept, by its own lines."""

CLIMB = ("P279", "P131")
"""Properties that are followed upwards as far as they go."""


def wikidata(lines: Iterable[str]) -> Iterator[str]:
    """Yield the triples on some paths, and what describes the entities on them, sorted."""
    triples = [tuple(line.rstrip(" .\n").split(" ", 2)) for line in lines]
    leading: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for subject, predicate, value in triples:
        name = predicate.strip("<>").removeprefix(DIRECT)
        leading[name][subject].add(value)
        if value.startswith("<"):
            leading[f"^{name}"][value].add(subject)
    nodes: set[str] = set()
    for path, share in PATHS.items():
        nodes |= set(_on_path(leading, path, share))
    used = {name.removeprefix("^") for path in PATHS for hop in path for name in hop.split()}
    above = set(nodes)
    for name in CLIMB:
        classes = {value for node in nodes for value in leading["P31"][node]}
        above |= _climb(leading[name], nodes | classes)
    for subject, predicate, value in sorted(triples):
        name = predicate.strip("<>").removeprefix(DIRECT)
        on_path = name in used and subject in nodes and (value in nodes or value.startswith('"'))
        told = subject in nodes and name in (*DESCRIBE, LABEL)
        if on_path or told or (name in CLIMB and subject in above):
            yield f"{subject} {predicate} {value} .\n"


def _on_path(
    leading: Mapping[str, Mapping[str, set[str]]], path: tuple[str, ...], share: int
) -> Iterator[str]:
    """Yield the entities of every chain that goes the whole path from one of the entities kept."""

    def ends(hop: str, node: str) -> set[str]:
        return set().union(*(leading[name].get(node, set()) for name in hop.split()))

    starts = {node for name in path[0].split() for node in leading[name]}
    for start in starts:
        kept = int(hashlib.sha256(start.encode()).hexdigest(), 16) % share == 0
        if not kept or leading["P31"][start].isdisjoint(FIRST):
            continue
        chains = [(start,)]
        for hop in path:
            chains = [(*chain, end) for chain in chains for end in ends(hop, chain[-1])]
        yield from (node for chain in chains for node in chain if node.startswith("<"))


def _climb(upwards: Mapping[str, set[str]], nodes: set[str]) -> set[str]:
    found, new = set(nodes), set(nodes)
    while new:
        new = {above for node in new for above in upwards.get(node, ())} - found
        found |= new
    return found


# ----

SOURCES: Mapping[str, tuple[str, Callable[[Iterable[str]], Iterator[str]]]] = {
    "conceptnet": ("conceptnet-miniature.csv.gz", conceptnet),
    "wikidata": ("wikidata-miniature.nt.gz", wikidata),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=SOURCES)
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder to write to")
    arguments = parser.parse_args()
    file, choose = SOURCES[arguments.name]
    with gzip.open(arguments.source, "rt", encoding="utf-8") as lines:
        text = "".join(choose(lines))
    target = arguments.output / file
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{target}: {text.count(chr(10)):,} lines, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
