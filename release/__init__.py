"""Release: a built probe that others can trust, cite, load, rebuild and run.

>>> import release
>>> report = release.check("probes/wordnet_hypernymy")  # doctest: +SKIP
>>> report.passed  # doctest: +SKIP
True
>>> release.publish("probes/wordnet_hypernymy", "me/wordnet-hypernymy")  # doctest: +SKIP
>>> release.verify("me/wordnet-hypernymy").passed  # doctest: +SKIP
True
>>> release.export("probes/wordnet_hypernymy", "lm-eval", "out")  # doctest: +SKIP
"""

# No module here is named like one of these functions: importing it would replace the function as an
# attribute of the package.

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from release.checks.checking import check
    from release.checks.deep import audit
    from release.exports.exporting import export
    from release.hub.publishing import publish
    from release.hub.verification import verify

__all__ = ["audit", "check", "export", "publish", "verify"]

_MODULES = {
    "audit": "release.checks.deep",
    "check": "release.checks.checking",
    "export": "release.exports.exporting",
    "publish": "release.hub.publishing",
    "verify": "release.hub.verification",
}
"""Each function and its module, which is imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
