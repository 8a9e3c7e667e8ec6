"""Where questions come from: a built probe, published files, the Hub, or a dataset in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from evaluation.items.own_schema import (
    read_parquet,
    row_questions,
    table_questions,
    with_class_names,
)
from evaluation.items.recast import is_pair
from evaluation.items.rows import read_json
from evaluation.items.types import ProbeSplit, SplitQuestions, probe_split
from kbprobe.errors import KbprobeError, UsageError, did_you_mean, path_argument, wrong_argument
from kbprobe.files import data_files, datasets_cache, plain_path
from kbprobe.format.dataset import CARD, DATA, damaged_files
from kbprobe.format.manifest import MANIFEST, DataFile, Manifest, holds_manifest, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.parsing import yaml_value
from kbprobe.reading import read_text

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

ProbeSource: TypeAlias = "str | Path | datasets.DatasetDict | datasets.Dataset"
"""What a probe is read from: a folder, a file, a Hub id, or what ``kbprobe.build`` returned."""

_ACCEPTED = (
    "a folder that build-probe wrote, a file of items, a dataset's Hub id, or a datasets.Dataset "
    "or DatasetDict. datasets.Dataset.from_pandas and Dataset.from_list make a Dataset of a data "
    "frame or of a list of rows; several probes are evaluated one after another"
)

DEFAULT_SPLIT = "test"
WHOLE = "all"
"""The split of a file whose name contains no split."""

_SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_OF_SPLITS = {"", "rand", "random", "split"}
"""Words of file names that tell how a split was made, as in CommonsenseQA's ``dev_rand_split``."""

_SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".parquet")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


def source_argument(place: str, probe: object) -> ProbeSource:
    """Return a probe that a caller gave, paths as text.

    Args:
        place: the function and its argument, for the message.
        probe: whatever was given.

    Raises:
        UsageError: it is not something that a probe can be read from.
    """
    if isinstance(probe, str | os.PathLike):
        return str(path_argument(place, probe, _ACCEPTED))
    from datasets import Dataset, DatasetDict

    splits = probe.values() if isinstance(probe, Mapping) else [probe]
    if splits and all(isinstance(split, Dataset) for split in splits):
        return cast("DatasetDict | Dataset", probe)
    raise wrong_argument(place, probe, _ACCEPTED)


class UnknownSplit(UsageError):
    """A probe exists but has no such split."""


def open_probe(
    source: ProbeSource,
    *,
    split: str = DEFAULT_SPLIT,
    config: str | None = None,
    label_names: Sequence[str] = (),
) -> ProbeSplit:
    """Read one split of a probe, wherever it is. Local files take precedence over the Hub.

    Args:
        source: a folder that ``build-probe`` wrote; a file of rows as oLMpics, WordNetQA,
            DictionaryQA or ARC publish them (JSON lines or a JSON list, gzipped or not, or
            Parquet); a folder of such files, one a split; a dataset's Hub id, ``org/name``; or a
            ``datasets.DatasetDict`` or ``Dataset`` in memory.
        split: its name there; ``dev`` and ``validation`` are one. A single file is one split: its
            name tells which, and the default stands for it.
        config: a dataset's config, a folder within the folder, or, in a folder of several probes'
            files, the name that a probe's files share: ``age_comparison`` of
            ``age_comparison_dev.jsonl``.
        label_names: what labels of NLI rows mean that are numbers without names, in order from 0.

    Returns:
        All rows of the split. Rows that published files repeat are scored as often.

    Raises:
        UsageError: there is no such source, config or split; the message names those that exist.
        KbprobeError: a file is damaged, the Hub cannot be reached, or any row is malformed or has
            no answer; the message gives file, line and field.
    """
    if not isinstance(source, str | os.PathLike):
        return _open_in_memory(source, split, config, label_names)
    found = find_split(source, split=split, config=config)
    if found is None:
        return _open_dataset(str(source), split, config, label_names)
    return found.open(label_names)


@dataclass(frozen=True)
class FoundSplit:
    """A split whose files were found locally, but not yet read.

    Attributes:
        name: the probe's name, followed by the config unless it is the default one.
        source: the folder or file, as it was given.
        split: its own name there.
        paths: the files that hold its rows.
        manifest: the manifest of a probe that ``build-probe`` wrote.
        entries: the manifest's records of the files; empty if there is no manifest.
        folder: what these are relative to.
    """

    name: str
    source: str
    split: str
    paths: Sequence[Path]
    manifest: Manifest | None = None
    entries: Sequence[DataFile] = ()
    folder: Path = Path()

    def open(self, label_names: Sequence[str] = ()) -> ProbeSplit:
        """Read the rows, after verifying their checksums if there are any.

        Raises:
            UsageError: a row is malformed, or the file is of an unknown format.
            KbprobeError: the file is damaged.
        """
        self.verify()
        read = _read(self.paths, label_names)
        return probe_split(self.name, self.source, self.split, read, self.manifest)

    def verify(self) -> None:
        """Compare the files with their checksums, if there are any.

        Raises:
            KbprobeError: a file is damaged.
        """
        if damage := damaged_files(self.folder, self.entries):
            raise KbprobeError(f"{self.folder}: {damage[0]}. Build the probe again.")


def find_split(
    source: str | os.PathLike[str], *, split: str = DEFAULT_SPLIT, config: str | None = None
) -> FoundSplit | None:
    """Find the files of a split without reading their rows.

    The arguments are those of :func:`open_probe`.

    Returns:
        None if the library ``datasets`` has to read it: for Hub ids, and folders whose card
        lists configs.

    Raises:
        UsageError: there is no such source, config or split; the message names those that exist.
    """
    source = str(source)
    if os.path.isfile(source):
        path = Path(source)
        if path.name == MANIFEST:
            return _find_built(path.parent, source, split, config)
        if config is not None:
            raise UsageError(f"{source} is a file and has no configs. Leave {config!r} out.")
        return _find_file(path, source, split)
    if source and os.path.isdir(source):
        if holds_manifest(source):
            return _find_built(Path(source), source, split, config)
        return _find_in_folder(Path(source), source, split, config)
    if os.path.exists(source):
        raise UsageError(f"{source} is neither a plain file nor a folder: give a file of rows.")
    if not _HUB_ID.fullmatch(source) or source.endswith(_SUFFIXES):
        raise UsageError(
            f"There is no file or folder {source!r}. {_hint(source)}"
            "A dataset on the Hub is named org/name."
        )
    if (hint := _hint(source)).startswith("Did you mean"):
        # Probably a misspelt path; do not query the Hub for it.
        raise UsageError(f"There is no file or folder {source!r}. {hint.strip()}")
    return None


def _open_in_memory(
    source: datasets.DatasetDict | datasets.Dataset,
    split: str,
    config: str | None,
    label_names: Sequence[str],
) -> ProbeSplit:
    """Read a split of a dataset in memory; its rows' fingerprint identifies it."""
    if config not in (None, DEFAULT_CONFIG):
        raise UsageError(
            f"a dataset in memory has no config {config!r}: build or load that config, and pass it"
        )
    if isinstance(source, Mapping):
        own = _choose(split, source, "the dataset")
        source = source[own]
    else:
        own = WHOLE if source.split is None else str(source.split)
        _check_lone_split(split, own, "the dataset", "Pass that split, or the DatasetDict.")
    from kbprobe.format.in_memory import manifest_of

    found = _dataset_questions(source, f"the dataset's split {own}", label_names)
    opened = probe_split(
        source.info.dataset_name or "dataset", "memory", own, found, manifest_of(source, own)
    )
    return replace(opened, source=f"memory:{opened.fingerprint[:16]}")


def _dataset_questions(
    dataset: datasets.Dataset, source: str, label_names: Sequence[str]
) -> SplitQuestions:
    """Read a dataset's rows as questions, with the names of classes that its features give."""
    table: pa.Table = dataset.with_format("arrow")[:]
    table = table.replace_schema_metadata(dataset.features.arrow_schema.metadata)
    return table_questions(with_class_names(table, source, label_names), source, label_names)


def _find_built(folder: Path, source: str, split: str, config: str | None) -> FoundSplit:
    """Find a split of a probe that ``build-probe`` wrote."""
    if config is not None and holds_manifest(folder / config):
        return _named(_find_built(folder / config, source, split, None), config)
    manifest = read_manifest(folder)
    # By config, the folder that a file is in, and by split.
    configs: dict[str, dict[str, list[DataFile]]] = {DEFAULT_CONFIG: {}}
    for entry in manifest.files:
        held = entry.path.split("/")[0]
        splits = configs.setdefault(DEFAULT_CONFIG if held == DATA else held, {})
        splits.setdefault(entry.split, []).append(entry)
    config = config or DEFAULT_CONFIG
    if config not in configs:
        raise UsageError(_unknown(source, "config", config, configs))
    own = _choose(split, configs[config], source)
    entries = configs[config][own]
    paths = [folder / entry.path for entry in entries]
    found = FoundSplit(manifest.probe, source, own, paths, manifest, entries, folder)
    return _named(found, config)


def _find_file(path: Path, source: str, split: str) -> FoundSplit:
    own = _split_of(path)
    remedy = "Name the file of that split, or the folder that holds both."
    _check_lone_split(split, own, source, remedy)
    return FoundSplit(_file_name(path), source, own, [path])


def _check_lone_split(split: str, own: str, source: str, remedy: str) -> None:
    """Refuse a split other than the only one; the default selects whichever that is."""
    if split not in (DEFAULT_SPLIT, own) and not _same_split(split, own):
        raise UnknownSplit(f"{source} is one split ({own}); it has no split {split!r}. {remedy}")


def _find_in_folder(folder: Path, source: str, split: str, config: str | None) -> FoundSplit | None:
    """Find a split in a folder that ``build-probe`` did not write; None: ``datasets`` reads it."""
    if _needs_datasets(folder):
        return None
    if config is not None and (folder / config).is_dir():
        inner = _find_built if holds_manifest(folder / config) else _find_in_folder
        found = inner(folder / config, source, split, None)
        return None if found is None else _named(found, config)
    probes: dict[str, list[Path]] = {}
    for path in sorted([*folder.iterdir(), *(folder / DATA).glob("*")]):
        # A pipe is refused where it would be read.
        if path.name.endswith(_SUFFIXES) and not path.is_dir():
            probes.setdefault(_file_name(path), []).append(path)
    if not probes:
        if built := sorted(path.parent for path in folder.glob(f"*/{MANIFEST}")):
            some = ", ".join(map(str, built[:5])) + (", ..." if len(built) > 5 else "")
            raise UsageError(f"{source} holds no probe itself. Name one of those in it: {some}.")
        raise UsageError(
            f"{source} holds no probe: neither {MANIFEST} nor files of rows "
            f"({', '.join(_SUFFIXES)}). Build one with: build-probe NAME -o DIR"
        )
    if config is not None and config not in probes:
        raise UsageError(_unknown(source, "config", config, probes))
    files = [path for name in ([config] if config else probes) for path in probes[name]]
    if len(files) == 1 and _split_of(files[0]) == WHOLE:
        return _find_file(files[0], source, split)
    own = _choose(split, {_split_of(path) for path in files} - {WHOLE}, source)
    files = [path for path in files if _split_of(path) == own]
    names = sorted({_file_name(path) for path in files})
    if len(names) > 1:
        raise UsageError(f"{source} holds several probes. Name one as config: {', '.join(names)}")
    if len({_SHARD.sub("", _base_name(path)) + path.suffix for path in files}) > 1:
        paths = ", ".join(str(path) for path in files)
        raise UsageError(f"Several files hold the split {own}. Name one of them: {paths}")
    return FoundSplit(names[0], source, own, files)


def _needs_datasets(folder: Path) -> bool:
    """Whether the folder's card lists configs or names classes, as ``datasets`` reads them."""
    try:
        card = read_text(folder / CARD)
        head = yaml_value(card.split("---\n")[1], CARD) if card.startswith("---\n") else None
    except (OSError, ValueError, IndexError, UsageError):
        return False
    if not isinstance(head, dict):
        return False
    return bool(head.get("configs")) or "'class_label'" in str(head.get("dataset_info"))


def _read(paths: Sequence[Path], label_names: Sequence[str]) -> SplitQuestions:
    """Read a split's one file, or its Parquet shards."""
    source = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    if not paths[0].name.endswith(_SUFFIXES):
        known = ", ".join(_SUFFIXES)
        raise UsageError(f"{source} is not a file of rows: its name must end in one of {known}.")
    if paths[0].suffix == ".parquet":
        return table_questions(read_parquet(paths, label_names), source, label_names)
    return row_questions(read_json(paths[0]), source, label_names)


def _open_dataset(
    source: str, split: str, config: str | None, label_names: Sequence[str]
) -> ProbeSplit:
    """Read a split through ``datasets``, from a Hub id or a folder with a card."""
    import datasets

    is_folder = os.path.isdir(source)
    place = os.path.realpath(source) if is_folder else source
    try:
        builder = _builder(place, source, config)
        known = builder.info.splits or builder.config.data_files or ()
        own = _choose(split, [str(name) for name in known], source)
        builder.download_and_prepare()
        dataset = builder.as_dataset(split=own)
        manifest, own_config = None, config
        if not is_folder:
            manifest, own_config = _hub_probe(source, config, builder.config.name)
    except (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError) as error:
        raise _not_loaded(source, error) from None
    columns = dataset.column_names
    if "question" not in columns and not is_pair(dict.fromkeys(columns)):
        raise UsageError(
            f"{source}, config {builder.config.name}, has no column 'question' but "
            f"{', '.join(columns[:4])} ...: its rows are not those of a probe. Name "
            "another config with --config."
        )
    found = _dataset_questions(dataset, f"{source}, split {own}", label_names)
    name = os.path.basename(place) if manifest is None else manifest.probe
    return _named(probe_split(name, source, own, found, manifest), own_config)


def _builder(place: str, source: str, config: str | None) -> datasets.DatasetBuilder:
    import datasets

    try:
        cache = None
        if os.path.isdir(place):
            # Absolute, since datasets takes some names, such as "json", for formats.
            place, cache = plain_path(place), datasets_cache(data_files(place))
        return datasets.load_dataset_builder(place, config, cache_dir=cache)
    except ValueError:
        # Raised for an unknown or missing config, but also for what cannot be read at all.
        known = datasets.get_dataset_config_names(place)
        if config is not None and config not in known:
            raise UsageError(_unknown(source, "config", config, known)) from None
        if config is None and len(known) > 1:
            names = ", ".join(known)
            raise UsageError(f"{source} has several configs. Name one of: {names}") from None
        raise


def _hub_probe(source: str, asked: str | None, config: str) -> tuple[Manifest | None, str | None]:
    """Find the probe that a config of a dataset on the Hub belongs to.

    In a dataset of several probes, those after the first have separate folders: the config
    ``hypernyms-no_language`` is ``no_language`` of the probe in ``hypernyms/``.

    Args:
        source: the dataset's id.
        asked: the config that was asked for.
        config: the config that was opened.

    Returns:
        Its manifest, with configs named as in the dataset, and its own name of the config; None
        and ``asked`` where there is none.
    """
    manifest = _hub_manifest(source, MANIFEST)
    if manifest is not None and config in manifest.configs:
        return manifest, config
    words = config.split("-")
    for cut in range(len(words), 0, -1):
        folder, own = "-".join(words[:cut]), "-".join(words[cut:]) or DEFAULT_CONFIG
        manifest = _hub_manifest(source, f"{folder}/{MANIFEST}")
        if manifest is not None and own in manifest.configs:
            return _within(folder, manifest), own
    return None, asked


def _within(folder: str, manifest: Manifest) -> Manifest:
    """Name a probe's configs as in a dataset that keeps the probe in a folder."""

    def named(config: str) -> str:
        return folder if config == DEFAULT_CONFIG else f"{folder}-{config}"

    files = tuple(one.model_copy(update={"config": named(one.config)}) for one in manifest.files)
    asked = {named(config): one for config, one in manifest.sub_questions.items()}
    return manifest.model_copy(update={"files": files, "sub_questions": asked})


def _hub_manifest(source: str, path: str) -> Manifest | None:
    """Fetch a manifest from the Hub, for its audit; None if there is none."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return read_manifest(Path(hf_hub_download(source, path, repo_type="dataset")))
    except (EntryNotFoundError, ConnectionError, UsageError):
        return None


def _not_loaded(source: str, error: Exception) -> KbprobeError:
    import datasets

    reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
    if os.path.isdir(source):
        return KbprobeError(f"{source} could not be loaded: {reason}. Name one of its files.")
    kind: type[KbprobeError] = KbprobeError
    if isinstance(error, datasets.exceptions.DatasetNotFoundError):
        kind = UsageError
    elif datasets.config.HF_HUB_OFFLINE:
        reason = "offline mode is on (HF_HUB_OFFLINE), and it has not been loaded before"
    return kind(
        f"There is no file or folder {source!r}. {_hint(source)}"
        f"Nor could it be loaded as a dataset from the Hub: {reason}."
    )


def _hint(source: str) -> str:
    """Suggest what a nonexistent path may have meant, or how to create it."""
    folder, name = os.path.split(source.rstrip("/"))
    near = os.path.join("probes", name)
    if not folder and os.path.isdir(near):
        return f"Did you mean {near!r}? "
    try:
        siblings = [os.path.join(folder, entry) for entry in os.listdir(folder or ".")]
    except (OSError, ValueError):
        return ""
    if meant := did_you_mean(source, siblings):
        return f"{meant.strip()} "
    build = f"If it is a probe that you want to build: build-probe {name} -o {source}. "
    return build if folder else ""


_Split = TypeVar("_Split", ProbeSplit, FoundSplit)


def _named(opened: _Split, config: str | None) -> _Split:
    """Add a config to the probe's name, so that results of two configs are not confused.

    The probe's audit concerns its default config and is dropped for others.
    """
    if config in (None, DEFAULT_CONFIG):
        return opened
    return replace(opened, name=f"{opened.name}-{config}", manifest=None)


def _choose(split: str, known: Iterable[str], source: str) -> str:
    """Return the known split that is meant: by its exact name or a synonym."""
    known = list(known)
    if split in known:
        return split
    same = [name for name in known if _same_split(name, split)]
    if len(same) == 1:
        return same[0]
    raise UnknownSplit(_unknown(source, "split", split, known))


def _unknown(source: str, what: str, name: str, known: Iterable[str]) -> str:
    names = ", ".join(sorted(known))
    rest = f"It has: {names}." if names else "It has none."
    return f"{source} has no {what} {name!r}. {rest}{did_you_mean(name, known)}"


def _same_split(one: str, other: str) -> bool:
    return _SPLIT_WORDS.get(one.lower(), one) == _SPLIT_WORDS.get(other.lower(), other)


def _base_name(path: Path) -> str:
    """Return a file's name without the suffixes of its format."""
    return path.name.removesuffix(".gz").rpartition(".")[0]


def _split_of(path: Path) -> str:
    """Return the word of a file's name that names its split: ``dev`` stays ``dev``."""
    words = [
        word for word in re.split(r"[^A-Za-z]+", _base_name(path)) if word.lower() in _SPLIT_WORDS
    ]
    return words[-1].lower() if words else WHOLE


def _file_name(path: Path) -> str:
    """Name a probe after its file, without the split: of ``hypernymy/dev.jsonl``, the folder."""
    split = _split_of(path)
    name = _SHARD.sub("", _base_name(path))
    if split != WHOLE:
        name = re.sub(rf"(?i)(?<![a-z]){split}(?![a-z])", "", name).strip("-_. ")
    if set(re.split(r"[^a-z]+", name.lower())) - _OF_SPLITS:
        return name
    folder = path.resolve().parent
    return folder.parent.name if folder.name == DATA else folder.name
