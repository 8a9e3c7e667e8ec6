"""A tenth of WordNet as a snapshot of its own: what is frequent, and what that is a kind of.

Builds of it take a fraction of those of the whole, and are as good wherever a test holds rows
against the options or against one another. It is taken from the embedded snapshot, so that the
repository has no second copy of anything.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from kb_cache.base import Compiled
from kb_cache.snapshot import SourceInfo, write_snapshot
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import KIND, WordNet
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import to_numpy
from kbprobe.files import replacing_folder

NAME = "miniature"
LEAST = 3
"""How often a word of a synset was tagged in the corpora that WordNet counts."""


def write_miniature(folder: Path) -> None:
    """Write the snapshot ``wordnet-miniature``."""
    whole = load_wordnet()
    with replacing_folder(folder) as unfinished:
        write_snapshot(
            unfinished,
            Compiled("The frequent part of WordNet", _tables(whole, _frequent(whole))),
            kind=KIND,
            name=f"{KIND}-{NAME}",
            version=f"{whole.version}-{NAME}",
            licence=whole.licence,
            attribution=whole.attribution,
            citation=whole.citation,
            source=SourceInfo("The frequent part of WordNet"),
        )


def _frequent(whole: WordNet) -> Bools:
    """(synsets,) frequent ones, what they are kinds of, and the heads of their satellites."""
    counts = to_numpy(whole.senses["count"])
    kept = np.zeros(len(whole), dtype=np.bool_)
    kept[to_numpy(whole.senses["synset"])[counts >= LEAST]] = True
    ends = [whole.edges(kind) for kind in ("hypernym", "instance_hypernym")]
    source = np.concatenate([source for source, _ in ends])
    target = np.concatenate([target for _, target in ends])
    while (new := kept[source] & ~kept[target]).any():
        kept[target[new]] = True
    return kept


def _tables(whole: WordNet, kept: Bools) -> dict[str, pa.Table]:
    """Return the tables of some synsets, their rows renumbered."""
    tables = {
        one.name: getattr(whole, one.name)
        for one in fields(whole)
        if isinstance(getattr(whole, one.name), pa.Table)
    }
    synset = _places(kept)
    senses = kept[to_numpy(tables["senses"]["synset"])]
    examples = kept[to_numpy(tables["examples"]["synset"])]
    places = {"synset": synset, "sense": _places(senses), "example": _places(examples)}
    places |= {"source": synset, "target": synset}
    places |= {"source_sense": places["sense"], "target_sense": places["sense"]}
    made = {"synsets": tables.pop("synsets").filter(pa.array(kept))}
    for name, table in tables.items():
        there = np.ones(table.num_rows, dtype=np.bool_)
        for column in places.keys() & set(table.column_names):
            old = to_numpy(table[column]).astype(np.int64)
            new = np.where(old < 0, old, places[column][old])
            there &= (old < 0) | (new >= 0)
            field = table.schema.field(column)
            at = table.schema.get_field_index(column)
            table = table.set_column(at, field, pa.array(new).cast(field.type))
        made[name] = table.filter(pa.array(there)).combine_chunks()
    return made


def _places(kept: Bools) -> Ints:
    """Return the new number of each row, -1 where it is left out."""
    return np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int64)
