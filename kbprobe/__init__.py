"""kbprobe: build probe datasets from knowledge bases and find out what language models know.

>>> import kbprobe
>>> probe = kbprobe.build("wordnet_hypernymy", max_hops=2)  # doctest: +SKIP
>>> results = kbprobe.evaluate(probe, "roberta-large")  # doctest: +SKIP

``list_probes``, ``build``, ``load``, ``evaluate``, ``compare``, ``publish`` and ``ProbeCallback``
are imported when they are first used, so that ``import kbprobe`` takes no time and needs no
optional package. Their options are in ``__init__.pyi``, which `tests/signatures.py` generates for
editors and type checkers.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

# What ``from kbprobe import *`` gives: nothing that needs an optional package (ProbeCallback), and
# no built-in name (``list``, which is ``list_probes``).
__all__ = ["build", "compare", "evaluate", "list_probes", "load", "publish"]

_PLACES = {
    "ProbeCallback": ("evaluation", "ProbeCallback"),
    "build": ("builders", "build"),
    "compare": ("evaluation", "compare"),
    "evaluate": ("evaluation", "evaluate"),
    "list": ("builders", "list_probes"),
    "list_probes": ("builders", "list_probes"),
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
    return sorted({*globals(), *_PLACES, "__version__"})
