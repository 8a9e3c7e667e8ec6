"""Datasets of the Hugging Face Hub, and local folders of data files, as sources."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kbprobe.errors import SourceError
from kbprobe.files import data_files, datasets_cache, plain_path

PREFIX = "hub:"


@dataclass(frozen=True)
class HubTable:
    """One split of a dataset.

    Attributes:
        name: the dataset's id, configuration and split, joined by colons.
        rows: a ``datasets.Dataset``.
    """

    name: str
    rows: Any

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.rows.column_names
        return names

    def label_names(self, column: str) -> Mapping[Any, str] | None:
        """Return the names of a column's labels, if they are numbers."""
        feature = self.rows.features.get(column)
        names = getattr(feature, "names", None)
        return dict(enumerate(names)) if names else None

    def placed(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each row with its place."""
        for number, row in enumerate(self.rows):
            yield f"{self.name}, row {number:,}", row

    def sha256(self) -> str:
        """Return the sha256 (hex) of the rows as JSON."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(json.dumps(row, sort_keys=True, default=str).encode())
        return digest.hexdigest()


def read_hub(address: str) -> list[HubTable]:
    """Load the splits of a dataset.

    Args:
        address: "hub:ID", "hub:ID:CONFIG" or "hub:ID:CONFIG:SPLIT"; CONFIG may be empty. A local
            folder stands for its own data files.

    Raises:
        SourceError: it cannot be obtained; the message says what to do without a network.
    """
    from datasets import Dataset, DatasetDict, load_dataset
    from huggingface_hub.errors import HfHubHTTPError

    id_, _, rest = address.removeprefix(PREFIX).partition(":")
    config, _, split = rest.partition(":")
    try:
        place, cache = id_, None
        if os.path.isdir(id_):
            place, cache = plain_path(id_), datasets_cache(data_files(id_))
        loaded = load_dataset(place, config or None, split=split or None, cache_dir=cache)
    # Raised by the underlying libraries for a missing network, id, configuration or data file.
    except (OSError, ValueError, HfHubHTTPError, RuntimeError) as error:
        said = str(error).strip().split("\n")[0] or repr(error)
        raise SourceError(
            f"the dataset {id_!r} cannot be loaded: {said}. It is looked for on the Hub and in the "
            "cache of datasets: without a network, load it once where there is one and copy that "
            "cache (HF_HOME), or download its files and give their folder with --from"
        ) from error
    found = {split: loaded} if isinstance(loaded, Dataset) else loaded
    if not isinstance(found, dict | DatasetDict):
        raise SourceError(f"the dataset {id_!r} cannot be read: it is a {type(loaded).__name__}")
    return [HubTable(":".join(filter(None, (id_, config, str(s)))), t) for s, t in found.items()]
