"""The request for a build."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from builders.engine.options import ProbeOptions
from builders.engine.probe import Probe
from builders.engine.render.controls import check_masks_of, controls_lacking
from builders.engine.render.template_file import Template
from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.dataset import check_target
from kbprobe.format.setups import CLOZE, DEFAULT_CONFIG
from kbprobe.format.shards import Format


@dataclass(frozen=True)
class Request:
    """Everything that a build depends on.

    Attributes:
        probe: the probe's declaration.
        options: the validated options.
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

    @cached_property
    def wordings(self) -> Template:
        """The template, checked for what the probe's setup needs."""
        template = self.probe.template(self.options, self.template)
        if self.probe.setup == CLOZE:
            check_masks_of(template)
        return template

    @cached_property
    def knowledge(self) -> Any:
        """The knowledge base, loaded when first asked for."""
        return self.probe.open(self.options)

    @property
    def controls(self) -> tuple[str, ...]:
        """The control renderings to make."""
        return tuple(name for name in self._asked_controls if name not in self.controls_lacking)

    @property
    def controls_lacking(self) -> dict[str, str]:
        """The control renderings that the wordings do not allow, each with what they lack."""
        return controls_lacking(self.wordings, self._asked_controls)

    @property
    def _asked_controls(self) -> tuple[str, ...]:
        return self.probe.controls if self.probe.controls and self.options.controls else ()

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants to make."""
        return tuple(self.probe.variants) if self.probe.variants and self.options.variants else ()

    def description(self) -> dict[str, Any]:
        """The request as the manifest records it: enough to build the same bytes again."""
        return {
            "probe": self.probe.name,
            "options": self.options.model_dump(mode="json"),
            "seed": self.seed,
            "format": self.format,
            "audit": self.audit,
            "template_digest": self.wordings.digest,
            "knowledge_base": self.knowledge.digest,
            "kbprobe_version": kbprobe_version(),
        }

    def check_config(self, config: str) -> None:
        """Raise a UsageError that names the available configs, if this is not one of them."""
        probe = self.probe
        known = (DEFAULT_CONFIG, *self.controls, *self.variants, *probe.sub_questions)
        if config not in known:
            lacking = self.controls_lacking.get(config)
            remedy = f" {lacking}." if lacking else ""
            remedy += " Build it with controls=True." * (config in probe.controls and not lacking)
            remedy += " Build it with variants=True." * (config in probe.variants)
            raise UsageError(
                f"{probe.name} has no config {config!r}.{remedy}"
                f"{did_you_mean(config, known)} It has: {', '.join(known)}."
            )

    def is_in(self, folder: Path, overwrite: bool) -> bool:
        """Return whether a folder holds exactly this, as :func:`check_target` does."""
        return check_target(folder, self.description(), overwrite)
