"""A rich console for tables and styles; slow to import, so imported only before printing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rich.console
from rich.segment import Segment

from kbprobe.terminal import visible


class Console(rich.console.Console):
    """A console that shows control characters in texts; see `kbprobe.terminal`."""

    def render(self, *args: Any, **options: Any) -> Iterator[Segment]:
        """Yield the segments of a renderable; its styles and cursor movements are rich's own."""
        for text, style, control in super().render(*args, **options):
            yield Segment(text if control else visible(text), style, control)
