"""What the registries share that other packages add to: a broken package is left out."""

from __future__ import annotations

from kbprobe.terminal import echo

_told: set[str] = set()


def left_out(what: str, name: str, error: BaseException) -> None:
    """Warn, once in a process, that an entry of another package is left out.

    Args:
        what: what the entry is: "probe", "scorer".
        name: of the entry point.
        error: why it cannot be used.
    """
    message = (
        f"warning: the {what} {name!r} of another package was left out: "
        f"{type(error).__name__}: {error}"
    )
    if message not in _told:
        _told.add(message)
        echo(message, err=True)
