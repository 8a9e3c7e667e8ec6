"""Shared by all of kbprobe's commands: help in sections, errors and exit codes.

Programs import a subcommand when it is called: only click is imported here, so that ``--help`` is
fast. Exit codes are 0: done. 1: failed. 2: the request was wrong. 130: interrupted with Ctrl-C.
"""

from __future__ import annotations

import gc
import io
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from textwrap import fill
from typing import Any, NamedTuple

import click

from kbprobe.errors import KbprobeError, UsageError, did_you_mean, key_hint, missing_extra
from kbprobe.plugins import place_of_others
from kbprobe.processes import leave_working_directory
from kbprobe.terminal import VisibleFormatter, echo
from kbprobe.terminal.progress import set_quiet

HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Context settings of every command: ``-h`` asks for help as well."""

SECTIONS = (
    *("Study", "Probe", "Build", "Reading sheet", "Model", "Scoring", "Training", "Endpoint"),
    *("Hub", "Output"),
)
"""Sections of a command's options, in the order in which help shows them."""

MAX_SEED = (1 << 63) - 1
"""The largest seed: the largest integer that JSON and Arrow can represent everywhere."""

_ALL = "kbprobe.help_all"
_TERM = 24
"""Maximum width of the column of options; longer ones have a line of their own."""


class Option(click.Option):
    """An option with a section of the help; help shows a rare one only with ``--help-all``."""

    def __init__(
        self, *args: Any, section: str = SECTIONS[-1], rare: bool = False, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.section, self.rare = section, rare
        if isinstance(self.type, click.IntRange) and self.type.max is None:
            self.type = click.IntRange(self.type.min, MAX_SEED)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the text in brackets, without limits, which error messages state."""
        return {k: one for k, one in super().get_help_extra(ctx).items() if k != "range"}


class Subcommand(NamedTuple):
    """A subcommand, as its program's help lists it.

    Attributes:
        section: the heading under which it is listed.
        sentence: what it does.
        place: where it is defined, as ``module:attribute``.
    """

    section: str
    sentence: str
    place: str


class Command(click.Command):
    """A command whose help lists options by section.

    Attributes:
        examples: command lines for the help.
        listed: what else the help lists: sentences by name, by heading.
        described: the command whose help describes the options; this one then only names them.
        subcommands: the subcommands of its program, in the same form.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        listed: Mapping[str, Mapping[str, str]] | None = None,
        described: str = "",
        **settings: Any,
    ) -> None:
        super().__init__(*args, **{"context_settings": HELP, **settings})
        self.examples, self.listed, self.described = examples, listed or {}, described
        self.subcommands: Mapping[str, Mapping[str, str]] = {}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters and those of all commands; some rare ones show ``--help-all``."""
        params = super().get_params(ctx)
        rare = any(getattr(one, "rare", False) for one in params)
        return [*params[:-1], *_EVERYWHERE.values(), params[-1], _help_all(rare)]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write how to call the command, and mention the other commands."""
        super().format_usage(ctx, formatter)
        if self.subcommands:
            more = "COMMAND [OPTIONS] ..."
            formatter.write_usage(ctx.command_path, more, prefix=" " * len("Usage: "))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a description of the command, and examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what is listed, and the options by section."""
        _write_listed({**self.listed, **self.subcommands}, formatter)
        sections: dict[str, list[tuple[str, str]]] = {}
        flags: dict[str, list[str]] = {}
        for one in self.get_params(ctx):
            shown = not getattr(one, "rare", False) or _ALL in ctx.meta
            shown = shown and isinstance(one, click.Option)
            if shown and (record := one.get_help_record(ctx)) is not None:
                section = getattr(one, "section", SECTIONS[-1])
                sections.setdefault(section, []).append(record)
                flags.setdefault(section, []).append("/".join(one.opts))
        names = sorted(sections, key=_place)
        if self.described and _ALL not in ctx.meta:
            with formatter.section(f"Options (described by {self.described})"):
                _write_names({name: flags[name] for name in names}, formatter)
            return
        for name in names:
            with formatter.section("Options" if len(names) == 1 else name):
                formatter.write_dl(sections[name], col_max=_TERM)


def _place(section: str) -> int:
    """Return the position of a section in the help; sections of other packages come last."""
    return SECTIONS.index(section) if section in SECTIONS else len(SECTIONS)


def _write_listed(listed: Mapping[str, Mapping[str, str]], formatter: click.HelpFormatter) -> None:
    for heading, names in listed.items():
        with formatter.section(heading):
            formatter.write_dl([*names.items()])


def _write_names(flags: Mapping[str, Sequence[str]], formatter: click.HelpFormatter) -> None:
    """Write the names of options, a line or more for each section."""
    width = max(map(len, flags)) + 4
    for section, names in flags.items():
        start = f"  {section}".ljust(width)
        formatter.write(
            fill(
                "  ".join(names),
                formatter.width,
                initial_indent=start,
                subsequent_indent=" " * width,
                break_on_hyphens=False,
            )
            + "\n"
        )


def _show_all(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        echo(ctx.get_help())
        ctx.exit()


_EVERYWHERE = {
    flag: click.Option([flag], is_flag=True, expose_value=False, help=about)
    for flag, about in (
        ("--quiet", "Show no progress."),
        ("--debug", "Show tracebacks of errors."),
    )
}
"""Shown in the help of all commands; `kbprobe.cli.run` handles them."""


@cache
def _help_all(named: bool) -> click.Option:
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=not named,
        callback=_show_all,
        help="Also show the options that are rarely needed.",
    )


def command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Decorate the function of a command, as `click.command` does."""
    return click.command(name, cls=Command, **settings)


option = partial(click.option, cls=Option)
"""Adds an option to a command, as `click.option`; takes ``section`` and ``rare`` as well."""


class Program(click.Group):
    """A program, with subcommands and a fallback for anything that is not a subcommand's name."""

    def __init__(
        self,
        name: str,
        subcommands: Mapping[str, Subcommand],
        otherwise: Callable[[list[str]], Command] | None = None,
        **settings: Any,
    ) -> None:
        """Store the subcommands, and the function that makes the fallback from the arguments."""
        super().__init__(name, **{"context_settings": HELP, **settings})
        self.subcommands = subcommands
        self._otherwise = otherwise

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all``, which shows no more than ``--help``."""
        return [*super().get_params(ctx), _help_all(False)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return [*self.subcommands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand."""
        if cmd_name not in self.subcommands:
            return None
        module, _, attribute = self.subcommands[cmd_name].place.partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Choose the command by the first argument; without arguments, the fallback shows help."""
        words = args if args or self._otherwise is None else ["--help"]
        if self._otherwise is None or words[0] in self.subcommands:
            return super().make_context(info_name, words, *rest, **extra)
        fallback = self._otherwise(words)
        fallback.subcommands = self.listed()
        return fallback.make_context(info_name, words, *rest, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command chosen."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands by section."""
        _write_listed(self.listed(), formatter)

    def listed(self) -> dict[str, dict[str, str]]:
        """Return the subcommands by section, with their sentences."""
        sections: dict[str, dict[str, str]] = {}
        for name, one in self.subcommands.items():
            sections.setdefault(one.section, {})[name] = one.sentence
        return sections


FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
_ZIPPED = (
    "kbprobe cannot run from within a zip file or a wheel, since its data are files. Install it: "
    "pip install FILE.whl"
)


def kbprobe_version() -> str:
    """The installed version of kbprobe."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("kbprobe")
    except PackageNotFoundError:
        return "0+unknown"


def run(command: click.Command, args: Sequence[str] | None, prog_name: str) -> int:
    """Run a click command and return its exit code; raises exceptions only with ``--debug``.

    ``--debug`` and ``--quiet`` may be anywhere before a ``--``, also after a subcommand;
    ``--version`` must come first. ``args`` defaults to the arguments of the process.
    """
    leave_working_directory()
    _open_closed_streams()
    if not os.path.isfile(__file__):
        echo(f"{prog_name}: error: {_ZIPPED}", err=True)
        return FAILED
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal cannot encode are escaped.
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:  # logging, unless it was already configured
        logging.lastResort.setFormatter(VisibleFormatter())
    words = list(sys.argv[1:] if args is None else args)
    options = words[: words.index("--")] if "--" in words else words
    if options[:1] == ["--version"]:
        echo(f"{prog_name} (kbprobe {kbprobe_version()})")
        return 0
    # Most objects live until the command ends: looking for others often costs a tenth of the time.
    gc.set_threshold(50_000)
    debug = "--debug" in options
    set_quiet("--quiet" in options)
    words = [word for word in options if word not in _EVERYWHERE] + words[len(options) :]
    try:
        result = command.main(words, prog_name=prog_name, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _without_reader()
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            message, code = error.format_message(), WRONG_USAGE
        else:
            message, code = _describe(error)
            message = f"{prog_name}: {message}"
        try:
            echo(message, err=True)
        except BrokenPipeError:
            _without_reader()
        return code
    return result if isinstance(result, int) else 0


def _open_closed_streams() -> None:
    """Open the null device for standard streams that are closed (``2>&-``).

    The next file that is opened would otherwise take their place, and what is printed go into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _without_reader() -> int:
    """Return the exit code after the reader of the output (head, less) has exited.

    Python would complain again when it flushes.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(null, stream.fileno())
    return FAILED


def _describe(error: BaseException) -> tuple[str, int]:
    """The message for an error (after "PROG: ") and the exit code."""
    # click turns both Ctrl-C and the end of input at a prompt into its Abort.
    cause = error.__cause__ or error.__context__
    if isinstance(error, click.Abort) and isinstance(cause, EOFError):
        return "error: input ended where an answer was expected", FAILED
    if isinstance(error, click.Abort | KeyboardInterrupt):
        kept = "Run it again to go on: what is finished is kept."
        return f"Interrupted; nothing was left half written. {kept}", INTERRUPTED
    if isinstance(error, click.NoSuchOption):
        params = error.ctx.command.params if error.ctx else ()
        listed = [(one.opts[0], one.help) for one in params if isinstance(one, click.Option)]
        hint = key_hint(error.option_name.lstrip("-").replace("-", "_"), listed) or did_you_mean(
            error.option_name, error.possibilities or ()
        )
        error = click.UsageError(f"no such option: {error.option_name}.{hint}", error.ctx)
    if isinstance(error, click.UsageError):
        context = error.ctx
        hint = f"\n{context.get_usage()}\nMore: {context.command_path} --help" if context else ""
        return f"error: {error.format_message()}{hint}", WRONG_USAGE
    if isinstance(error, click.ClickException):
        return f"error: {error.format_message()}", error.exit_code
    if isinstance(error, KbprobeError):
        return f"error: {error}", WRONG_USAGE if isinstance(error, UsageError) else FAILED
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ". --debug shows where"
        return f"error: {error.strerror}{where}", FAILED
    if isinstance(error, MemoryError):
        said = "the memory of this machine does not suffice; --limit asks for fewer rows"
        return f"error: {said}, --debug shows where it ended", FAILED
    if place := place_of_others(error):
        return (
            f"error: {type(error).__name__}: {error}. It was raised by {place}, which is not part "
            "of kbprobe: correct it there; --debug shows the traceback."
        ), FAILED
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)):
        return f"error: {missing}", FAILED
    return (
        f"error: unexpected {type(error).__name__}: {error}. This is a fault of kbprobe; "
        "--debug shows where."
    ), FAILED
