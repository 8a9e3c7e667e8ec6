"""GGUF files: parsed once, although transformers parses one for each thing that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from kbprobe.files import file_state


@lru_cache(maxsize=1)
def _reader(kind: Any, path: Path, _state: tuple[int, ...]) -> Any:
    return kind(path)


@contextmanager
def parsed_once(*, last: bool = False) -> Iterator[None]:
    """Let transformers read configuration, tokenizer and weights of a GGUF file parsed once.

    For each of them it makes a reader of the ``gguf`` package, which takes seconds. Within the
    block that class gives the reader that it gave last, unless the file has changed. A version of
    transformers that takes its readers elsewhere parses as often as before.

    Args:
        last: whether to release the reader at the end of the block, since nothing more is read.
    """
    import gguf

    own = gguf.GGUFReader
    if not isinstance(own, type):  # in such a block already
        yield
        return

    def reader(path: Any, mode: Any = "r") -> Any:
        if mode != "r":
            return own(path, mode)
        real = Path(path).resolve()
        return _reader(own, real, file_state(real.stat()))

    gguf.GGUFReader = reader  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        gguf.GGUFReader = own  # type: ignore[misc]
        if last:
            _reader.cache_clear()
