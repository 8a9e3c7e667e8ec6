"""What a probe is, and the registry that finds all probes by name.

A probe is one decorated function: given a knowledge base, options and a random generator, it
returns a plan. Modules of ``builders/`` register their probes when imported; other packages
announce theirs in the entry point group ``kbprobe.probes`` (the value names a module), and keep
each probe's template, ``NAME.yaml``, next to that module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from builders.engine.options import ProbeOptions
from builders.engine.own_files import own_endings
from builders.engine.registry import PROBES
from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.format.licences import PAPERS
from kbprobe.format.setups import CONTROLS, SETUPS
from kbprobe.plugins import IN_FILE, entry_points, import_file, left_out, of_others

if TYPE_CHECKING:
    from builders.engine.plan import Plan
    from builders.engine.render.template_file import Template
    from kbprobe.rng import RandomGenerator

ENTRY_POINTS = "kbprobe.probes"

Planner = Callable[[Any, Any, "RandomGenerator"], "Plan"]
PlannerT = TypeVar("PlannerT", bound=Planner)


@dataclass(frozen=True)
class Variant:
    """A config that asks rows of the default config in another way.

    Attributes:
        summary: one sentence on how.
        setup: how its rows are evaluated, if not like the probe's.
    """

    summary: str
    setup: str = ""


@dataclass(frozen=True)
class Declaration:
    """A probe without its planner: the decorator :data:`probe`, which registers one.

    Attributes:
        name: its name on the command line, and that of its template file.
        options: the model of its options.
        open: loads the knowledge base named by the options.
        question_fields, choice_fields: the fields that its templates may use.
        setup: how it is evaluated ("mc_qa", "mc_mlm", ...).
        controls: the control renderings that make sense for it, names among
            :data:`kbprobe.format.setups.CONTROLS`.
        paper: the paper that introduced such questions: a name among
            :data:`kbprobe.format.licences.PAPERS`, cited in the card; empty for none.
        sub_questions: additional configs, with their own questions, that the plan includes.
        wordings: makes the template from the options, if wordings depend on what is asked for; None
            if the template is a file.
        reword: changes that template as a user's file says; None: no file can.
        variants: config -> how it asks the rows of the default config in another way.
        fit: adapts the template to the options; None if it is used as it is.
        wording_sets: what ``--wording`` may name besides the id of a wording: the part of ids
            before the first "-", for all wordings with it.
        arguments_decide: whether the arguments of a question together decide its answer (two
            ages), so that the audit sets no limit for baselines that see them together.
        flags: what may keep a question out of the clean tier: flag -> its meaning.
        quick: options of a build that takes a second or two, for tests and first looks.
    """

    name: str
    _: KW_ONLY
    options: type[ProbeOptions]
    open: Callable[[Any], Any]
    question_fields: Collection[str]
    choice_fields: Collection[str]
    setup: str = "mc_qa"
    controls: tuple[str, ...] = ()
    paper: str = ""
    sub_questions: tuple[str, ...] = ()
    wordings: Callable[[Any], Template] | None = None
    reword: Callable[[Any, Path], Template] | None = None
    variants: Mapping[str, Variant] = field(default_factory=dict)
    fit: Callable[[Template, Any], Template] | None = None
    wording_sets: tuple[str, ...] = ()
    arguments_decide: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, plan: PlannerT) -> PlannerT:
        """Register a planner.

        Raises:
            KbprobeError: another planner has that name already, it has no docstring, or there is
                no such setup, control or paper.
        """
        name = self.name
        if not plan.__doc__ and sys.flags.optimize < 2:  # which leaves docstrings out
            raise KbprobeError(f"the planner of {name} needs a docstring: its first line is shown")
        words: list[tuple[str, Iterable[str]]] = [
            (self.setup, SETUPS),
            (self.paper, ("", *PAPERS)),
            *((control, CONTROLS) for control in self.controls),
        ]
        for word, allowed in words:
            if word not in allowed:
                raise KbprobeError(
                    f"{name}: {word!r} is none of {', '.join(filter(None, allowed))}"
                )
        known = _registered[name].plan.__module__ if name in _registered else plan.__module__
        home = PROBES[name].module if name in PROBES else known
        if home != plan.__module__:
            raise KbprobeError(
                f"two modules register a probe {name!r}: {home} and "
                f"{plan.__module__}. Rename one of them."
            )
        _registered[name] = Probe(**vars(self), plan=plan)
        return plan


probe = Declaration


@dataclass(frozen=True)
class Probe(Declaration):
    """A probe: its declaration, and the function that decides which questions to ask."""

    _: KW_ONLY
    plan: Planner

    @property
    def summary(self) -> str:
        """What it asks, in one line: the first line of the planner's docstring."""
        if self.plan.__doc__ is None:
            return PROBES[self.name].summary if self.name in PROBES else self.name
        return self.plan.__doc__.strip().splitlines()[0]

    def template(self, options: ProbeOptions, override: Path | None = None) -> Template:
        """Load the probe's wordings.

        Args:
            options: the build's.
            override: a user's file that extends or replaces them.

        Raises:
            UsageError: they are at fault, ``--wording`` names none of them, or ``override`` is
                given where no file can override.
        """
        return self.all_wordings(options, override).chosen(
            options.wording, self.wording_sets, named=self.wordings is not None
        )

    def all_wordings(self, options: ProbeOptions, override: Path | None) -> Template:
        """Load the wordings that ``--wording`` chooses from; otherwise as `template`."""
        from builders.engine.render.template_file import load_template

        if self.wordings is None:
            # The first of several; together with others, English has separate wordings.
            language = getattr(options, "language", "en")
            language = "" if language == "en" else language.partition(",")[0]
            template = load_template(
                self.name,
                language=language,
                question_fields=self.question_fields,
                choice_fields=self.choice_fields,
                override=override,
                builtin=self.template_file,
            )
            return template if self.fit is None else self.fit(template, options)
        if override is None:
            return self.wordings(options)
        if self.reword is None:
            raise UsageError(
                f"{self.name}: --template does not apply: its wordings stand beside what it asks "
                f"for (see build-probe {self.name} --help)"
            )
        return self.reword(options, override)

    @property
    def template_file(self) -> Path | None:
        """The probe's template, next to the module of another package's planner.

        None for built-in probes, whose templates are in ``templates/``.
        """
        module = sys.modules[self.plan.__module__]
        if self.plan.__module__.startswith("builders.") or module.__file__ is None:
            return None
        return Path(module.__file__).with_name(f"{self.name}.yaml")


_registered: dict[str, Probe] = {}


_broken: dict[str, str] = {}
"""Why entry points cannot be used, by name."""


def _third_party(name: str | None = None) -> None:
    """Import the probes of other packages; given a name, only as many as needed to find it.

    A package that cannot be imported, or registers a name that is taken, is left out with a
    warning.
    """
    entries = list(entry_points(group=ENTRY_POINTS))
    exact = [entry for entry in entries if entry.name == name and ":" in entry.value]
    for entry in exact or entries:
        of_others(entry.module)
        try:
            entry.load()
        except (Exception, SystemExit) as error:
            _broken[entry.name] = f"{entry.value} cannot be used: {type(error).__name__}: {error}"
            left_out("probe", entry.name, error)


def all_probes() -> dict[str, Probe]:
    """Return every probe by name, in alphabetical order; all of their modules are imported."""
    for entry in PROBES.values():
        import_module(entry.module)
    _third_party()
    return dict(sorted(_registered.items()))


def summaries() -> dict[str, str]:
    """Return what every probe asks, by name, without importing built-in probes."""
    _third_party()
    others = {name: probe.summary for name, probe in _registered.items()}
    return dict(
        sorted({**others, **{name: entry.summary for name, entry in PROBES.items()}}.items())
    )


def third_party_probes() -> list[Probe]:
    """Return the probes of other packages."""
    _third_party()
    return [probe for name, probe in _registered.items() if name not in PROBES]


def knows(name: str) -> bool:
    """Return whether a probe has that name, or "FILE.py" or "FILE.py:function" names one."""
    if IN_FILE.fullmatch(name):
        return True
    if name not in PROBES and name not in _registered:
        _third_party(name)
    return name in PROBES or name in _registered


def _from_file(path: Path, function: str | None) -> Probe:
    """Import a user's file and return the probe declared by one of its functions.

    Without a function name, the file's only probe.

    Raises:
        UsageError: there is no such file, its function declares no probe, or none is named and
            there are several.
        KbprobeError: the file cannot be imported.
    """
    module = import_file(path, "a probe, or FILE.py:function")
    named = {
        name: probe
        for name, value in vars(module).items()
        for probe in _registered.values()
        if probe.plan is value
    }
    if function in named:
        return named[function]
    if function is None and len(named) == 1:
        return next(iter(named.values()))
    there = ", ".join(f"{path}:{name}" for name in named) or "none"
    if function is None and named:
        raise UsageError(f"{path} holds several probes; name one: {there}")
    wanted = "function" if function is None else f"function {function!r}"
    raise UsageError(f"{path} has no {wanted} that is decorated with @probe. There are: {there}")


def find_probe(name: str, others: Iterable[str] = ()) -> Probe:
    """Return the probe of that name.

    Args:
        name: a probe's name; "FILE.py:function", or "FILE.py" if it declares one probe.
        others: other names that may have been meant: subcommands.

    Raises:
        UsageError: there is none; the message names the nearest and how to list them.
        KbprobeError: it belongs to a package that cannot be imported.
    """
    if in_file := IN_FILE.fullmatch(name):
        return _from_file(Path(in_file[1]), in_file[2])
    if not knows(name):
        if name in _broken:
            raise KbprobeError(f"the probe {name!r} of another package, {_broken[name]}")
        known = summaries()
        if Path(name).suffix:
            raise UsageError(f"{name} is no table or ontology that is read: {own_endings()}")
        raise UsageError(
            f"no probe is called {name!r}.{did_you_mean(name, (*known, *others))} "
            "`build-probe list` shows them all."
        )
    if name not in _registered:
        import_module(PROBES[name].module)
    return _registered[name]
