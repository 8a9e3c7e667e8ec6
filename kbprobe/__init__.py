"""kbprobe: build probe datasets from knowledge bases and find out what language models know.

>>> import kbprobe
>>> probe = kbprobe.build("wordnet_hypernymy", max_hops=2)  # doctest: +SKIP
>>> results = kbprobe.evaluate(probe, "roberta-large")  # doctest: +SKIP

``build``, ``load``, ``evaluate`` and ``publish`` are imported when they are first used, so that
``import kbprobe`` takes no time and needs no optional package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builders import build
    from evaluation import evaluate
    from kbprobe.format.dataset import load
    from release import publish

    __version__: str

__all__ = ["__version__", "build", "evaluate", "load", "publish"]

_MODULES = {
    "build": "builders",
    "load": "kbprobe.format.dataset",
    "evaluate": "evaluation",
    "publish": "release",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from kbprobe.cli import kbprobe_version

        return kbprobe_version()
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
