"""The source of exports: splits that every harness can score, templates, and README.md."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.cli import kbprobe_version
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.card import data_files
from kbprobe.format.parquet import write_parquet
from kbprobe.format.setups import CLOZE, DEFAULT_CONFIG, MASK, QUESTION, task_name
from kbprobe.reading import read_text
from kbprobe.tables import in_markdown
from release.cards import LICENCE, join_card, split_card

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import Manifest, SplitFiles


SCORED = (QUESTION, CLOZE)
"""Setups in which one choice is right and all are scored."""

_EXAMPLES = ("validation", "train")
"""Splits for solved examples, in order of preference: harnesses read the whole split."""

_REQUIRED = ("id", "question", "choices", "answer", "setup")

_PLAIN = re.compile(r"\w[\w.-]*")
"""Names of configs and splits: parts of the paths that are written."""


@dataclass(frozen=True, eq=False)
class Task:
    """A task of a harness: one split of one config, known to be scorable.

    Attributes:
        name: the harness's name for it.
        entry: its files.
        table: all its rows, with the columns of the item schema.
        examples: the files of a split to draw solved examples from; None if there is
            no other split, or its rows are not labelled.
    """

    name: str
    config: str
    split: str
    entry: SplitFiles
    table: pa.Table
    examples: SplitFiles | None

    @property
    def setups(self) -> set[str]:
        """The setups of its rows."""
        return set(self.table["setup"].unique().to_pylist())

    @property
    def folder(self) -> str:
        """The folder of its files, with a slash; empty for the default config."""
        return "" if self.config == DEFAULT_CONFIG else f"{self.config}/"


@dataclass(frozen=True)
class ProbeSource:
    """A built probe, and the tasks to be exported from it, named by ``name``."""

    folder: Path
    manifest: Manifest
    name: str
    split: str
    tasks: tuple[Task, ...]

    @property
    def probe(self) -> str:
        """The probe's name."""
        return self.manifest.probe

    @property
    def rights(self) -> dict[str, Any]:
        """Language, licence and sources from the probe's card; empty without a card."""
        from kbprobe.format.dataset import CARD

        try:
            front, _ = split_card(read_text(self.folder / CARD))
        except (OSError, UsageError):
            return {}
        rights = ("language", *LICENCE, "source_datasets")
        return {key: front[key] for key in rights if key in front}


def open_source(
    folder: Path, split: str, configs: Sequence[str] = (), name: str = ""
) -> ProbeSource:
    """Read the rows to export, after verifying checksums; of all configs by default.

    Tasks are named by ``name``, or the probe's name.

    Raises:
        UsageError: there is no such probe, config or split, or rows that no harness can score:
            without an answer, of a setup that needs a classifier, clozes without their one mask;
            or two tasks would have the same name.
        KbprobeError: a file is missing, damaged, or not of kbprobe's schema.
    """
    from kbprobe.format.manifest import read_manifest

    manifest = read_manifest(folder)
    name = name or manifest.probe
    named = configs or [*manifest.configs]
    # The default config first, as in the card.
    named = sorted(dict.fromkeys(named), key=lambda config: config != DEFAULT_CONFIG)
    tasks: dict[str, Task] = {}
    for config in named:
        task = task_name(name, config, split)
        if task in tasks:
            raise UsageError(
                f"The configs {tasks[task].config!r} and {config!r} would both become the task "
                f"{task}. Export them separately, with --config."
            )
        tasks[task] = _task(folder, manifest, task, config, split)
    return ProbeSource(folder, manifest, name, split, tuple(tasks.values()))


def place_data(task: Task, source: ProbeSource, target: Path) -> dict[str, str]:
    """Write the rows, and those from which examples are drawn, into a folder as Parquet.

    Parquet, because readers of JSON parse texts that look like dates as dates.

    Returns:
        Paths within ``target`` by split, the evaluated one first; a pattern if there are several
        files. They are those of the probe.
    """
    from kbprobe.format.dataset import DATA, read_rows

    paths = {}
    for entry in (task.entry, task.examples):
        if entry is None:
            continue
        folder = f"{task.folder}{DATA}"
        (target / folder).mkdir(parents=True, exist_ok=True)
        if all(file.path.endswith(".parquet") for file in entry.files):
            for at, file in enumerate(entry.files):
                name = f"{entry.split}-{at:05d}-of-{len(entry.files):05d}.parquet"
                shutil.copyfile(source.folder / file.path, target / folder / name)
        else:
            name = f"{entry.split}-00000-of-00001.parquet"
            write_parquet(read_rows(source.folder, entry), target / folder / name)
        paths[entry.split] = (
            f"{folder}/{name if len(entry.files) == 1 else entry.split + '-*.parquet'}"
        )
    return paths


def require_plain(folder: Path, *words: str) -> None:
    """Raise a UsageError for names of configs and splits that cannot be part of a path."""
    for word in words:
        if not _PLAIN.fullmatch(word):
            raise UsageError(
                f"{folder}: {word!r} cannot be the name of a folder or file: letters, digits, "
                "'_', '-' and '.' can. Name the configs to export with --config."
            )


def _task(folder: Path, manifest: Manifest, name: str, config: str, split: str) -> Task:
    from kbprobe.format.dataset import read_rows

    require_plain(folder, config, split)
    entry = manifest.files_of_split(config, split)
    table = read_rows(folder, entry)
    require_scorable(table, f"{folder}, config {config}, split {split}")
    entries = manifest.split_files(config)
    others = [entries[other] for other in _EXAMPLES if other != split and other in entries]
    examples = next((other for other in others if _labelled(read_rows(folder, other))), None)
    return Task(name, config, split, entry, table, examples)


def require_scorable(table: pa.Table, where: str) -> None:
    """Refuse rows that a harness would skip, score wrongly or stop at; messages say where.

    Raises:
        UsageError: no harness can score them.
        KbprobeError: they are damaged.
    """
    import pyarrow.compute as pc

    total = len(table)
    if not total:
        raise UsageError(f"{where} holds no rows. Build the probe with more.")
    if any(table[name].null_count for name in _REQUIRED):
        raise KbprobeError(f"{where} has nulls in {', '.join(_REQUIRED)}. Build it again.")
    other = set(table["setup"].unique().to_pylist()) - set(SCORED)
    if other:
        raise UsageError(
            f"{where} holds rows of {', '.join(sorted(other))}, which need a classifier; choices "
            f"are scored in {' and '.join(SCORED)} rows. Name the configs to export with --config."
        )
    unlabelled = pc.sum(pc.less(table["answer"], 0)).as_py()
    if unlabelled:
        raise UsageError(
            f"{where}: {unlabelled:,} of {total:,} rows have no answer yet (-1), and no harness "
            "can score them. Have them annotated (release-probe annotate), or name another --split."
        )
    sizes = pc.list_value_length(pc.struct_field(table["choices"].combine_chunks(), "text"))
    if pc.any(pc.greater_equal(table["answer"], sizes)).as_py():
        raise KbprobeError(f"{where}: an answer is not one of the choices. Build the probe again.")
    clozes = pc.filter(table["question"], pc.equal(table["setup"], CLOZE))
    masks = pc.count_substring(clozes, MASK)
    if len(clozes) and pc.any(pc.not_equal(masks, 1)).as_py():
        raise UsageError(f"{where} holds clozes without exactly one {MASK}. Build the probe again.")


def _labelled(table: pa.Table) -> bool:
    import pyarrow.compute as pc

    return len(table) > 0 and bool(pc.all(pc.greater_equal(table["answer"], 0)).as_py())


@dataclass(frozen=True)
class Written:
    """What a target wrote, for the export's README.

    Attributes:
        commands: what to run from within the folder.
        notes: what its numbers are, and what they are comparable with: paragraphs of Markdown.
        front: front matter, if the folder is a dataset that ``datasets`` loads.
    """

    commands: tuple[str, ...]
    notes: tuple[str, ...]
    front: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """A harness or format: its display name, how it is installed, and how tasks are written.

    ``write`` is given the probe, an empty folder, and the id of the published probe whose rows to
    read instead of a copy (or None).
    """

    title: str
    needs: str
    write: Callable[[ProbeSource, Path, str | None], Written]


def rendered(template: str, **values: Any) -> str:
    """Render a template of this folder; values in code go through the filter ``python``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # nosec B701 # nothing here is HTML
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {"python": repr, "docstring": _docstring, "plain": in_markdown}
    return environment.get_template(template).render(mask=MASK, cloze=CLOZE, **values)


def _docstring(text: str) -> str:
    r"""Return a text as a docstring, which nothing in the text can end.

    >>> print(_docstring('Rows of "x".').strip('"'))
    Rows of \"x\".
    """
    inside = text.encode("unicode_escape").decode().replace('"', '\\"')
    return f'"""{inside}"""'


def viewer_configs(files: Mapping[Task, Mapping[str, str]]) -> dict[str, Any]:
    """Return the front matter by which ``datasets`` finds each config's files, if there are any."""
    configs = [
        data_files(task.config, {split: [path] for split, path in paths.items()})
        for task, paths in files.items()
    ]
    return {"configs": configs} if configs else {}


def write_readme(source: ProbeSource, folder: Path, written: Written, target: Target) -> None:
    """Write ``README.md``: what it is, how to run it, and what its numbers are comparable with."""
    text = rendered(
        "readme.md.j2",
        source=source,
        written=written,
        target=target,
        rights=source.rights,
        version=kbprobe_version(),
    )
    if written.front:
        text = join_card({**source.rights, **written.front}, "\n" + text)
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
