"""What a target writes: rendered templates, and the export's page ``README.md``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbprobe.cli import kbprobe_version
from kbprobe.format.setups import CLOZE, DEFAULT_CONFIG, MASK
from kbprobe.tables import in_markdown
from release.cards import join_card
from release.exports.source import ProbeSource, Task


@dataclass(frozen=True)
class Written:
    """What a target wrote, for the page of the export.

    Attributes:
        commands: what to run from within the folder.
        notes: what its numbers are, and what they can be compared with: paragraphs of Markdown.
        front: front matter, where the folder is a dataset that ``datasets`` loads.
    """

    commands: tuple[str, ...]
    notes: tuple[str, ...]
    front: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """A harness, or a format: its name for people, how it is installed, how tasks are written.

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


def viewer_configs(files: Mapping[Task, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the front matter by which ``datasets`` finds each config's files."""
    return [
        {
            "config_name": task.config,
            **({"default": True} if task.config == DEFAULT_CONFIG else {}),
            "data_files": [{"split": split, "path": path} for split, path in paths.items()],
        }
        for task, paths in files.items()
    ]


def write_readme(source: ProbeSource, folder: Path, written: Written, target: Target) -> None:
    """Write ``README.md``: what it is, how it is run, what its numbers can be compared with."""
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
