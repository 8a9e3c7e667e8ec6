"""What the site adds to the pages in docs/, which are plain Markdown that reads well on GitHub.

- Links that leave docs/ (`../README.md`, `../evaluation/runs/spec.py`) lead to pages of the site
  that show these files, since the site has no repository around it.
- A comment `<!-- ::: builders.build -->` is replaced by the documentation of that object; with
  `<!-- ::: builders.build as kbprobe.build -->` its heading is that name.
- Comments for options, help and fields are replaced by tables (`reference.py`).
- Pages that the navigation in mkdocs.yml does not name are listed in it under "More".
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from reference import OBJECT, expanded

ROOT = Path(__file__).resolve().parents[2]

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^ *(```|~~~)")
LANGUAGES = {".py": "python", ".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".sh": "sh"}
SHOWN = "repository"
"""The folder of the site in which files outside docs/ are shown."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside docs/ that a page links to, directly or through others."""
    _list_the_rest(files, config)
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in _linked(page):
            if target in seen or target.startswith("docs/"):
                continue
            seen.add(target)
            files.append(_shown(target, config))
            if target.endswith(".md"):
                waiting.append(target)
    return files


def _list_the_rest(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that the navigation does not name to its end."""
    named = set(_named(config.nav))
    rest = [file.src_uri for file in files.documentation_pages() if file.src_uri not in named]
    if config.nav is not None and rest:
        config.nav.append({"More": sorted(rest)})


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for entry in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _named(entry)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links that leave docs/, and put the documentation of objects in its place."""
    if page.file.generated_by:
        return markdown
    relinked = _relinked(markdown, f"docs/{page.file.src_uri}")
    return OBJECT.sub(_documented, expanded(relinked))


def _documented(found: re.Match[str]) -> str:
    path, heading = found.groups()
    return f"::: {path}\n    options:\n      heading: {heading}" if heading else f"::: {path}"


def _shown(path: str, config: MkDocsConfig) -> File:
    """Return the page that shows a file of the repository: Markdown as it is, others as code."""
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except OSError as error:
        raise PluginError(f"a page links to {path}: {error}") from error
    if path.endswith(".md"):
        text = _relinked(text, path)
    else:
        language = LANGUAGES.get(Path(path).suffix, "text")
        text = f"# {path}\n\n`````{language}\n{text}`````\n"
    return File.generated(config, _place(path), content=text, inclusion=InclusionLevel.NOT_IN_NAV)


def _linked(page: str) -> Iterator[str]:
    """Yield the files of the repository that a page links to, from its root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for line in _prose(text.splitlines()):
        for _, target, _ in LINK.findall(line):
            if path := _from_root(page, target.partition("#")[0]):
                yield path


def _relinked(text: str, page: str) -> str:
    """Return a page's text with links to files as they are laid out in the site."""
    here = os.path.dirname(_place(page))

    def replaced(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        path, hash_, anchor = target.partition("#")
        linked = _from_root(page, path)
        if linked is None or (page.startswith("docs/") and linked.startswith("docs/")):
            return match.group()
        relative = os.path.relpath(_place(linked), here or ".")
        return f"{before}{relative}{hash_}{anchor}{after}"

    prose = set(_prose_numbers(lines := text.splitlines()))
    return "\n".join(
        LINK.sub(replaced, line) if at in prose else line for at, line in enumerate(lines)
    )


def _prose(lines: list[str]) -> Iterator[str]:
    return (lines[at] for at in _prose_numbers(lines))


def _prose_numbers(lines: list[str]) -> Iterator[int]:
    """Yield the numbers of the lines that are not in a code block."""
    fence = ""
    for at, line in enumerate(lines):
        if found := FENCE.match(line):
            if not fence:
                fence = found[1]
            elif fence == found[1]:
                fence = ""
        elif not fence:
            yield at


def _from_root(page: str, target: str) -> str | None:
    """Return a link's target from the root of the repository; None: it is no file of it."""
    if not target or re.match(r"\w+:", target):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(page), target))


def _place(path: str) -> str:
    """Return where a file of the repository is in the site, as a source path."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    # Hidden folders are left out of sites.
    parts = [part.lstrip(".") for part in path.split("/")]
    name = "/".join([SHOWN, *parts])
    return name if name.endswith(".md") else f"{name}.md"
