"""A limit on how long a function may take that waits for a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def within(
    seconds: float,
    function: Callable[_Parameters, _Result],
    *args: _Parameters.args,
    **kwargs: _Parameters.kwargs,
) -> _Result:
    """Return what a function returns, or raise what it raises, if it does so in time.

    Timeouts of sockets are for each piece that arrives, so that a server can keep us waiting for
    ever with a byte a second: before the end of its headers even those who look at the clock
    between pieces wait. The function runs in a thread, which a function that takes longer keeps,
    unheard, until its connection ends or the process does.

    Raises:
        TimeoutError: it takes longer than ``seconds``.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function(*args, **kwargs))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"it took longer than {seconds:.0f} s")
    if errors:
        raise errors[0]
    return results[0]
