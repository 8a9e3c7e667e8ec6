"""The specification of a run: a probe, a model, and how to score the probe with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evaluation.learners.base import LearnerEntry, flat
from evaluation.learners.registry import LEARNERS
from evaluation.options import Models, RunOptions, options_that, parse_options
from evaluation.scorers.entry import ScorerEntry
from evaluation.scorers.registry import SCORERS
from kbprobe.errors import UsageError
from kbprobe.options import Options, option_name

if TYPE_CHECKING:
    from evaluation.items.sources import ProbeSource
    from evaluation.models.handle import ModelHandle


NOT_OF_LOADED = frozenset(options_that(lambda role: Models.LOADED not in role.models))
"""Options that do not apply to a model that the caller has loaded."""
_UNNAMED = {*options_that(lambda role: role.recorded == "no")}


@dataclass(frozen=True)
class RunSpec:
    """A run as requested; :func:`evaluation.runs.run.open_run` determines its content hash.

    Attributes:
        probe: a folder, a file, a Hub id, or a dataset in memory.
        model: a folder, a ``.gguf`` file or a Hub id; or its name at an endpoint.
        options: options of scorers and learners that were given, by name, validated.
        folder: where its results are written, if anywhere.
        loaded: the model, if the caller has loaded it; ``model`` is then only its name.
    """

    probe: ProbeSource
    model: str
    run: RunOptions = field(default_factory=RunOptions)
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    loaded: ModelHandle | None = None

    @classmethod
    def parse(
        cls,
        probe: ProbeSource,
        model: str,
        values: Mapping[str, Any],
        folder: Path | None = None,
        owner: str = "evaluate",
    ) -> RunSpec:
        """Make a run from options given by name, on the command line or in Python.

        Raises:
            UsageError: an option is unknown or its value impossible.
        """
        values = import_named(values)
        run, options = parse_options(values, [entry.options for entry in plugins()], owner)
        return cls(probe, model, run, options, folder)

    def vary(self, folder: Path | None = None, **changes: Any) -> RunSpec:
        """Return a run that differs in some options: ``spec.vary(config="no_language", seed=1)``.

        Raises:
            UsageError: an option is unknown or its value impossible.
        """
        values = {**self.run.model_dump(exclude_unset=True), **self.options, **changes}
        varied = self.parse(self.probe, self.model, values)
        if self.loaded is not None:
            varied.refuse_for_loaded()
        return replace(varied, folder=folder or self.folder, loaded=self.loaded)

    def refuse_for_loaded(self, *further: str) -> None:
        """Refuse options that say how a model is found, loaded or fine-tuned, and further ones.

        Raises:
            UsageError: one is given.
        """
        for name in self.run.model_dump(exclude_defaults=True):
            if name in NOT_OF_LOADED or name in further:
                raise UsageError(
                    f"{option_name(name)} says how a checkpoint is found, loaded or fine-tuned, "
                    f"and the model to evaluate is in memory: leave {name} out, or save model and "
                    "tokenizer with save_pretrained(DIR) and evaluate DIR"
                )

    def named_options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults and that results depend on."""
        given = self.run.model_dump(exclude_defaults=True, exclude=_UNNAMED)
        for entry in plugins():
            for name, info in entry.options.model_fields.items():
                if not info.exclude and self.options.get(name, info.default) != info.default:
                    given[name] = self.options[name]
        return flat(given)

    @property
    def probe_name(self) -> str:
        """The probe's name in messages."""
        return self.probe if isinstance(self.probe, str) else "the dataset in memory"

    @property
    def model_name(self) -> str:
        """The model's name in messages, with its revision."""
        revision = self.run.revision
        return self.model if revision is None else f"{self.model} at {revision}"

    def single_options(self) -> list[str]:
        """Return the names of given options that belong to a single run: they say what to keep."""
        fields = [entry.options.model_fields for entry in plugins()]
        kept = {name for own in fields for name, field in own.items() if field.exclude}
        return [name for name in self.options if name in kept]

    def plugin_options(self, model: type[Options]) -> Options:
        """Return the options of one scorer or learner: those given, defaults elsewhere."""
        fields = model.model_fields
        return model.model_validate({n: v for n, v in self.options.items() if n in fields})


_Plugin = TypeVar("_Plugin", ScorerEntry, LearnerEntry)


def import_named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the names of scorers and learners that were given as files.

    ``scorer="twice.py:TWICE"`` imports the file and registers its entry, whose options are known
    from then on.

    Raises:
        UsageError: a file is not there, or does not define what is named.
        KbprobeError: it cannot be imported.
    """
    named = dict(values)
    if isinstance(text := named.get("scorer"), str):
        named["scorer"] = SCORERS.import_named(text, _recorded)
    if isinstance(text := named.get("learner"), str):
        named["learner"] = LEARNERS.import_named(text, _recorded)
    if isinstance(texts := named.get("learners"), tuple | list):
        named["learners"] = tuple(LEARNERS.import_named(str(one), _recorded) for one in texts)
    return named


def _recorded(entry: _Plugin, sha256: str) -> _Plugin:
    """Make scores depend on the file that defines an entry, since drafts keep their version."""
    content = entry.content
    return replace(entry, content=lambda own: {**content(own), "source_sha256": sha256})


def plugins() -> list[ScorerEntry | LearnerEntry]:
    """Return all scorers and learners, which have their own options."""
    return [*SCORERS, *LEARNERS]
