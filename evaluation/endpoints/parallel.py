"""A function called by several threads at once, its results in the caller's."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


def in_threads(
    function: Callable[[_Argument], _Result],
    arguments: Sequence[_Argument],
    count: int,
    stop: Callable[[], None],
) -> Iterator[tuple[int, _Result]]:
    """Call a function with each argument, and yield number and result as they come.

    After an error no further call is begun; the results of those that had begun are yielded
    before it is raised. The threads are daemons: an interruption waits for none of them.

    Args:
        function: what is called, in any of the threads.
        arguments: what it is called with.
        count: of threads.
        stop: called at the first error, so that calls that only wait may end.
    """
    todo = iter(range(len(arguments)))
    lock, stopped = threading.Lock(), threading.Event()
    done: queue.SimpleQueue[tuple[int, _Result | None, BaseException | None] | None]
    done = queue.SimpleQueue()

    def work() -> None:
        while not stopped.is_set():
            with lock:
                number = next(todo, None)
            if number is None:
                break
            try:
                done.put((number, function(arguments[number]), None))
            except BaseException as error:
                stopped.set()
                done.put((number, None, error))  # before what others raise because of stop()
                stop()
        done.put(None)

    running = min(count, len(arguments))
    for _ in range(running):
        threading.Thread(target=work, daemon=True).start()
    first: BaseException | None = None
    try:
        while running:
            ended = done.get()
            if ended is None:
                running -= 1
                continue
            number, result, error = ended
            if error is not None:
                first = first or error
            else:
                yield number, result  # type: ignore[misc]
    finally:
        stopped.set()
        stop()
    if first is not None:
        raise first
