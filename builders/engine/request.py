"""What a build is asked to make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builders.engine.options import ProbeOptions
from builders.engine.probe import Probe
from kbprobe.format.dataset import Format


@dataclass(frozen=True)
class Request:
    """All that a build depends on, beside the knowledge base.

    Attributes:
        probe: the probe's declaration.
        options: its validated options.
        seed: the seed of every draw.
        template: a file that extends or replaces the built-in wordings.
        format: how data files are written.
        audit: whether to run the audit.
    """

    probe: Probe
    options: ProbeOptions
    seed: int = 0
    template: Path | None = None
    format: Format = "parquet"
    audit: bool = True

    @property
    def controls(self) -> tuple[str, ...]:
        """The control renderings to make."""
        return self.probe.controls if self.options.controls else ()

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants to make."""
        return tuple(self.probe.variants) if self.options.variants else ()
