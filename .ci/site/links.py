"""Check a built site: each link to a page, a heading or an image of it leads somewhere.

Prints what leads nowhere and exits with 1; addresses outside the site are not asked.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and what of it can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the addresses and names of an element."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name == "id" and value:
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Return the links of a built site that lead nowhere, each with its page."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        # Links of the page for missing addresses start at the root of a server.
        for target in page.targets if path.name != "404.html" else []:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            linked = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            there = linked.exists() and (
                not anchor or linked not in pages or anchor in pages[linked].anchors
            )
            if not there:
                dead.append(f"{path.relative_to(site.resolve())}: {target}")
    if not pages:
        dead.append(f"no pages in {site}")
    return dead


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]))
    print("\n".join(found) or "all links of the site lead somewhere")
    sys.exit(bool(found))
