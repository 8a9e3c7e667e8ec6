"""The text files of an export: rendered templates, YAML, and its page ``README.md``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbprobe.cli import kbprobe_version
from kbprobe.format.dataset import DEFAULT_CONFIG
from kbprobe.format.setups import CLOZE, MASK
from release.cards import join_card
from release.exports.types import ProbeSource, Target, Task, Written


def rendered(template: str, **values: Any) -> str:
    """Render a template of this folder. Values in code go through the filter ``python``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Nothing here is HTML.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["python"] = repr
    return environment.get_template(template).render(mask=MASK, cloze=CLOZE, **values)


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Write YAML, its entries in order."""
    import yaml

    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=1000)
    path.write_text(text, encoding="utf-8")


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
    (folder / "README.md").write_text(text, encoding="utf-8")
