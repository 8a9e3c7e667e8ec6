"""A card: its front matter, sections that are added to its text later, and the canary."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import ragged_ranges
from kbprobe.columns import to_numpy
from kbprobe.format.items import COLUMNS, Coded, Items, ItemsInParts, Ragged, arrow_schema
from kbprobe.format.licences import languages_of
from kbprobe.format.setups import DEFAULT_CONFIG, SETUPS

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import DataFile

CANARY = "Evaluation data: please keep it out of training corpora. kbprobe canary GUID"
COLUMN = "canary"
"""Name of the column that repeats the canary in every row, if the publisher asks for that."""

#: The namespace of all probes' GUIDs. It never changes, so that canaries can be searched for.
_NAMESPACE = uuid.UUID("5d3cb3a2-6f4b-5e2a-9c55-6b1d1c0f7e42")


def canary_of(probe: str, seed: int) -> str:
    """Return the canary of a probe: the same for the same name and seed, on any machine.

    >>> canary_of("wordnet_hypernymy", 0).split()[-1] == canary_of("wordnet_hypernymy", 0)[-36:]
    True
    """
    return f"{CANARY} {uuid.uuid5(_NAMESPACE, f'{probe}:{seed}')}"


BEFORE = ("Screen", "Left out", "Build it again", "Licence")
"""Sections that are added to a card later go before the first of these."""


def titled_lines(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each line with its line ending, and its title if it is a second-level heading.

    Lines of code that look like headings are not headings.
    """
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"\s*(```+|~~~+)", line)
        heading = not mark and not fence and line.startswith("## ")
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        yield line, line.removeprefix("## ").strip() if heading else None


def with_section(card: str, title: str, body: str) -> str:
    """Return a card with a section, replacing one of that title or before those of `BEFORE`.

    Everything else is unchanged.
    """
    starts: dict[str, int] = {}
    at = 0
    for line, heading in titled_lines(card):
        if heading is not None:
            starts.setdefault(heading, at)
        at += len(line)
    names = list(starts)
    new = f"## {title}\n\n{body.strip()}\n\n"
    if title in starts:
        after = names[names.index(title) + 1 :]
        end = starts[after[0]] if after else len(card)
        return card[: starts[title]] + (new if after else new[:-1]) + card[end:]
    before = next((starts[name] for name in names if name in BEFORE), None)
    if before is None:
        return f"{card.rstrip()}\n\n{new[:-1]}"
    return card[:before] + new + card[before:]


SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
"""The Hub's size categories, each with its upper limit in rows (exclusive)."""

OFFSET = 4
"""Bytes of the offset that Arrow keeps for each string and list."""

Configs = Mapping[str, Mapping[str, Items | ItemsInParts]]


def front_matter(
    manifest: Mapping[str, Any], setup: str, licence: Mapping[str, str], configs: Configs
) -> dict[str, Any]:
    """Return the front matter as plain data, in the order of the Hub's own template.

    It always lists ``configs`` with a default: without one ``load_dataset`` would merge the
    folders of all configs.

    Args:
        manifest: with its files.
        setup: how the probe is evaluated.
        licence: ``license`` and related fields.
        configs: items of each config and split.
    """
    task = SETUPS[setup]
    sources = manifest["knowledge_base"]["name"].split("+")
    entries = [
        config_entries(
            config,
            (entry for entry in manifest["files"] if entry.config == config),
            arrow_schema(),
            {name: (arrow_bytes(items), items.rows) for name, items in splits.items()},
        )
        for config, splits in configs.items()
    ]
    return {
        "language": languages_of(manifest),
        **licence,
        "pretty_name": pretty_name(manifest["probe"]),
        "annotations_creators": ["machine-generated"],
        "source_datasets": [f"extended|other-{name}" for name in sources],
        "task_categories": list(task.task_categories),
        "task_ids": list(task.task_ids),
        "size_categories": [size_category(manifest["counts"]["rows"])],
        "tags": ["probing", "knowledge", "kbprobe", *sources],
        "configs": [config for config, _ in entries],
        "dataset_info": [info for _, info in entries],
    }


def pretty_name(probe: str) -> str:
    """Return a probe's display name.

    >>> pretty_name("wordnet_hypernymy"), pretty_name("antonym_negation")
    ('WordNet hypernymy', 'Antonym negation')
    """
    words = probe.replace("_", " ").replace("wordnet", "WordNet")
    return words[:1].upper() + words[1:]


def size_category(rows: int) -> str:
    """Return the Hub's size category."""
    return next((name for bound, name in SIZES if rows < bound), "10M<n<100M")


def hub_features(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return a schema in the form of ``dataset_info``, from which ``datasets`` reads Features."""
    return [{"name": field.name, **_spelled(field.type)} for field in schema]


def _spelled(kind: pa.DataType) -> dict[str, Any]:
    # By their string form, to avoid importing pyarrow.types.
    if hasattr(kind, "value_type"):
        inner = _spelled(kind.value_type)
        return {"list": inner.get("dtype") or inner["struct"]}
    if kind.num_fields:
        fields = (kind.field(at) for at in range(kind.num_fields))
        return {"struct": hub_features(fields)}
    return {"dtype": str(kind)}


def config_entries(
    config: str,
    files: Iterable[DataFile],
    schema: pa.Schema,
    splits: Mapping[str, tuple[int, int]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a config's entries of ``configs`` and ``dataset_info`` in front matter.

    Args:
        config: its name.
        files: its files.
        schema: the schema of their rows.
        splits: the size of each split in Arrow, in bytes, and its number of rows.
    """
    held = list(files)
    paths: dict[str, list[str]] = {}
    for one in held:
        paths.setdefault(one.split, []).append(one.path)
    info = {
        "config_name": config,
        "features": hub_features(schema),
        "splits": [
            {"name": name, "num_bytes": size, "num_examples": rows}
            for name, (size, rows) in splits.items()
        ],
        "download_size": sum(entry.bytes for entry in held),
        "dataset_size": sum(size for size, _ in splits.values()),
    }
    return data_files(config, paths), info


def data_files(config: str, paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a config's entry of ``configs``: where the files of each split are."""
    files = [
        {"split": split, "path": some[0] if len(some) == 1 else list(some)}
        for split, some in paths.items()
    ]
    default = {"default": True} if config == DEFAULT_CONFIG else {}
    return {"config_name": config, **default, "data_files": files}


def arrow_bytes(items: Items | ItemsInParts) -> int:
    """Return the bytes of all rows in the types of :func:`kbprobe.format.items.arrow_schema`.

    ``datasets`` calls this number ``num_bytes``. It counts as ``pyarrow.Table.nbytes`` does, an
    offset for each string and list, except that there are no null bitmaps.
    """
    if isinstance(items, Items):
        return sum(_column_bytes(items, name) for name in COLUMNS)
    if items.num_bytes is not None:
        return items.num_bytes
    pairs = zip(items.cuts[:-1], items.cuts[1:], strict=True)
    return sum(arrow_bytes(items.make(start, stop)) for start, stop in pairs)


def _column_bytes(items: Items, name: str) -> int:
    rows = items.rows
    if name == "choices":
        texts = items.columns["choice_text"]
        assert isinstance(texts, Coded)
        labels = OFFSET * (rows + texts.codes.size) + texts.codes.size
        return OFFSET * rows + _strings(texts, texts.codes) + labels
    value: Any = items.columns.get(name, "")
    if isinstance(value, str):
        return rows * (OFFSET + len(value.encode()))
    if isinstance(value, Coded):
        lists = OFFSET * rows if value.codes.ndim > 1 else 0
        return lists + _strings(value, value.codes)
    if isinstance(value, Ragged):
        entries = ragged_ranges(value.indptr[value.line], np.diff(value.indptr)[value.line])
        parts = (_strings(part, part.codes[entries]) for part in value.parts.values())
        return OFFSET * rows + sum(parts)
    if isinstance(value, np.ndarray):
        return 4 * value.size + (OFFSET * rows if value.ndim > 1 else 0)
    # For numbers that are null in every row, Arrow counts a bitmap whose size depends on the slice.
    return 4 * rows if str(value.type) == "int32" else int(value.nbytes)


def _strings(column: Coded, codes: Any) -> int:
    """Return the bytes of the strings that ``codes`` select, and of their offsets."""
    import pyarrow.compute as pc

    lengths = to_numpy(pc.binary_length(column.values))
    return int(OFFSET * codes.size + lengths[codes].sum(dtype=np.int64))
