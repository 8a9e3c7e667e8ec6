"""Error reporting and exit codes, shared by all of kbprobe's commands.

0: done. 1: failed. 2: the request was wrong. 130: interrupted with Ctrl-C.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence

import click

from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.plugins import place_of_others
from kbprobe.terminal import VisibleFormatter, echo

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


def kbprobe_version() -> str:
    """The installed version of kbprobe."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("kbprobe")
    except PackageNotFoundError:
        return "0+unknown"


def run(command: click.Command, args: Sequence[str] | None, prog_name: str) -> int:
    """Run a click command and return its exit code; raises exceptions only with ``--debug``.

    ``--debug`` may be anywhere before a ``--``, also after a subcommand; ``--version`` must come
    first. ``args`` defaults to the arguments of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal cannot encode are escaped.
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:  # what is logged, where nothing else was set up
        logging.lastResort.setFormatter(VisibleFormatter())
    words = list(sys.argv[1:] if args is None else args)
    options = words[: words.index("--")] if "--" in words else words
    if options[:1] == ["--version"]:
        echo(f"{prog_name} (kbprobe {kbprobe_version()})")
        return 0
    debug = "--debug" in options
    words = [word for word in options if word != "--debug"] + words[len(options) :]
    try:
        result = command.main(words, prog_name=prog_name, standalone_mode=False)
    except BrokenPipeError:
        # The reader (head, less) has gone. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            echo(error.format_message(), err=True)
            return WRONG_USAGE
        message, code = _describe(error)
        echo(f"{prog_name}: {message}", err=True)
        return code
    return result if isinstance(result, int) else 0


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
        hint = did_you_mean(error.option_name, error.possibilities or ())
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
    return (
        f"error: unexpected {type(error).__name__}: {error}. This is a fault of kbprobe; "
        "--debug shows where."
    ), FAILED
