"""The front matter of a card: what the Hub and ``datasets`` read of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kbprobe.format.arrow_size import arrow_bytes
from kbprobe.format.attribution import languages_of
from kbprobe.format.dataset import DEFAULT_CONFIG
from kbprobe.format.items import arrow_schema
from kbprobe.format.setups import SETUPS

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.items import Items

SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
"""The Hub's size categories, each with the rows that it ends before."""

Configs = Mapping[str, Mapping[str, "Items"]]


def front_matter(
    manifest: Mapping[str, Any], setup: str, licence: Mapping[str, str], configs: Configs
) -> dict[str, Any]:
    """Return the front matter as plain data, in the order of the Hub's own template.

    It always lists ``configs`` with a default: without one ``load_dataset`` would merge the
    folders of all configs.

    Args:
        manifest: with its files.
        setup: how the probe is evaluated.
        licence: ``license`` and what goes with it.
        configs: items of each config and split.
    """
    task = SETUPS[setup]
    sources = manifest["knowledge_base"]["name"].split("+")
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
        "configs": [_config(manifest, config) for config in configs],
        "dataset_info": [_info(manifest, name, splits) for name, splits in configs.items()],
    }


def pretty_name(probe: str) -> str:
    """Return a probe's name for people.

    >>> pretty_name("wordnet_hypernymy"), pretty_name("antonym_negation")
    ('WordNet hypernymy', 'Antonym negation')
    """
    words = probe.replace("_", " ").replace("wordnet", "WordNet")
    return words[:1].upper() + words[1:]


def size_category(rows: int) -> str:
    """Return the Hub's size category."""
    return next((name for bound, name in SIZES if rows < bound), "10M<n<100M")


def hub_features(schema: pa.Schema) -> list[dict[str, Any]]:
    """Spell a schema as ``dataset_info`` has it: ``datasets`` reads its Features from there."""
    return [{"name": field.name, **_spelled(field.type)} for field in schema]


def _spelled(kind: pa.DataType) -> dict[str, Any]:
    # By their look: pyarrow.types would have to be imported for it.
    if hasattr(kind, "value_type"):
        inner = _spelled(kind.value_type)
        return {"list": inner.get("dtype") or inner["struct"]}
    if kind.num_fields:
        fields = (kind.field(at) for at in range(kind.num_fields))
        return {"struct": hub_features(fields)}
    return {"dtype": str(kind)}


def _entries(manifest: Mapping[str, Any], config: str) -> Iterable[Any]:
    return (entry for entry in manifest["files"] if entry.config == config)


def _config(manifest: Mapping[str, Any], config: str) -> dict[str, Any]:
    files = [{"split": one.split, "path": one.path} for one in _entries(manifest, config)]
    default = {"default": True} if config == DEFAULT_CONFIG else {}
    return {"config_name": config, **default, "data_files": files}


def _info(manifest: Mapping[str, Any], config: str, splits: Mapping[str, Items]) -> dict[str, Any]:
    sizes = {name: arrow_bytes(items) for name, items in splits.items()}
    return {
        "config_name": config,
        "features": hub_features(arrow_schema()),
        "splits": [
            {"name": name, "num_bytes": size, "num_examples": splits[name].rows}
            for name, size in sizes.items()
        ],
        "download_size": sum(entry.bytes for entry in _entries(manifest, config)),
        "dataset_size": sum(sizes.values()),
    }
