"""Runs of a score card: models x probes of a suite, as the suite has them evaluated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest
from kbprobe.errors import UsageError
from kbprobe.format.suite import members, suite_of
from kbprobe.options import Metavar, Options

FIXED = frozenset({"config", "split", "facts", "fold", "labels"})
"""Options of runs that the study sets itself: a score is of the same rows for everyone."""
SIBLINGS = "fresh"
"""The folder of results on the sibling suite, within that of the study."""


class ScorecardOptions(Options):
    """What a suite is compared with."""

    fresh: Annotated[str | None, Metavar("DIR")] = Field(
        None,
        min_length=1,
        description="Folder of a sibling of the suite, built with another seed: evaluates it as "
        "well, and measures contamination.",
    )


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return the runs: of each model on all probes, then on their siblings."""
    place = None if request.output is None else request.output / SIBLINGS
    fresh = replace(request, probes=siblings(request), output=place)
    return [
        part.spec(probe, model, facts=False)
        for model in request.models
        for part in (request, fresh)
        for probe in part.named_probes()
    ]


def siblings(request: StudyRequest) -> list[str]:
    """Return the sibling of each probe.

    Raises:
        UsageError: the probes and their siblings are not of two builds of one suite.
    """
    if (given := request.options.fresh) is None:
        return []
    probes = request.named_probes()
    names = [Path(probe).name for probe in probes]
    own = {None if found is None else found[1] for found in map(suite_of, probes)}
    fresh = {Path(one).name: one for one in members(given)}
    other = suite_of(next(iter(fresh.values())))
    suite = own.pop()
    if own or suite is None or other is None or not {*names} <= fresh.keys():
        raise UsageError(
            f"--fresh {given}: name the folder of a suite as the probe, and here that of the same "
            "suite built with another seed (build-probe --suite NAME --seed N)"
        )
    if other[1].seed == suite.seed:
        raise UsageError(f"--fresh {given} has the seed of the suite: build it with another --seed")
    return [fresh[name] for name in names]
