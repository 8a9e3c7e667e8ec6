"""kbprobe: build probe datasets from knowledge bases and find out what language models know.

>>> import kbprobe
>>> probe = kbprobe.build("wordnet_hypernymy", max_hops=2)  # doctest: +SKIP
>>> results = kbprobe.evaluate(probe, "roberta-large")  # doctest: +SKIP

``list``, ``build``, ``load``, ``evaluate``, ``compare``, ``publish`` and ``ProbeCallback`` are
imported when they are first used, so that ``import kbprobe`` takes no time and needs no optional
package.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builders import build
    from builders import list_probes as list
    from evaluation import ProbeCallback, compare, evaluate
    from kbprobe.format.dataset import load
    from release import publish

    __version__: str

__all__ = [
    "ProbeCallback",
    "__version__",
    "build",
    "compare",
    "evaluate",
    "list",
    "load",
    "publish",
]

_PLACES = {
    "ProbeCallback": ("evaluation", "ProbeCallback"),
    "build": ("builders", "build"),
    "compare": ("evaluation", "compare"),
    "evaluate": ("evaluation", "evaluate"),
    "list": ("builders", "list_probes"),
    "load": ("kbprobe.format.dataset", "load"),
    "publish": ("release", "publish"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from kbprobe.cli import kbprobe_version

        return kbprobe_version()
    if name in _PLACES:
        module, own = _PLACES[name]
        return getattr(import_module(module), own)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> Sequence[str]:
    return sorted({*globals(), *__all__})
