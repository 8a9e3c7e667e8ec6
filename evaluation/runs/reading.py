"""Splits as runs need them: read once for all runs that are of the same rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from evaluation.items.control_task import random_labels
from evaluation.items.sources import ProbeSource, open_probe
from evaluation.items.types import ProbeSplit, sample_clusters
from evaluation.options import RunOptions

_KEPT = 12
"""Splits held in memory: those of a probe, its controls and their random labels."""


class SplitReader:
    """Reads splits, and keeps those read last: the runs of a study share theirs."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[object, ...], tuple[ProbeSource, ProbeSplit]] = OrderedDict()

    def rows(self, probe: ProbeSource, options: RunOptions) -> ProbeSplit:
        """Return the rows that a run evaluates.

        Raises:
            UsageError: there is no such probe, config or split.
            KbprobeError: it cannot be read.
        """
        whole = self._read(probe, options, options.split)
        if options.limit is None:
            return whole
        limit, seed = options.limit, options.seed
        key = (id(whole), limit, seed)
        return self._keep(key, probe, lambda: sample_clusters(whole, limit, seed))

    def train(self, probe: ProbeSource, options: RunOptions) -> ProbeSplit:
        """Return the train split of a run; raises as :meth:`rows`."""
        return self._read(probe, options, "train")

    def _read(self, probe: ProbeSource, options: RunOptions, split: str) -> ProbeSplit:
        source = probe if isinstance(probe, str) else id(probe)
        key = (source, options.config, split)
        found = self._keep(
            key, probe, lambda: open_probe(probe, split=split, config=options.config)
        )
        if options.labels == "gold":
            return found
        return self._keep((*key, options.seed), probe, lambda: random_labels(found, options.seed))

    def _keep(
        self, key: tuple[object, ...], probe: ProbeSource, read: Callable[[], ProbeSplit]
    ) -> ProbeSplit:
        if key not in self._held:
            # The probe is held as well: what is known by its id must not be freed.
            self._held[key] = probe, read()
            if len(self._held) > _KEPT:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return self._held[key][1]
