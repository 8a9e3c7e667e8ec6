"""Splits as runs need them: read once for all runs that are of the same rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from evaluation.items.control_task import random_labels
from evaluation.items.folds import open_rows, take_fold
from evaluation.items.inputs import choices_alone
from evaluation.items.sources import ProbeSource
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
        whole = self._read(probe, options.config, options.split, options)
        if options.fold is not None:
            whole = self._fold(probe, whole, options.fold, other=False)
        if options.limit is None:
            return whole
        limit, seed = options.limit, options.seed
        key = (id(whole), limit, seed)
        return self._keep(key, probe, lambda: sample_clusters(whole, limit, seed))

    def train(self, probe: ProbeSource, options: RunOptions) -> ProbeSplit:
        """Return what a run may learn from: the train split, or the other folds.

        Raises as :meth:`rows`.
        """
        if options.fold is not None:
            whole = self._read(probe, options.config, options.split, options)
            return self._fold(probe, whole, options.fold, other=True)
        if options.train_on is None:
            return self._read(probe, options.config, "train", options)
        return self._read(options.train_on, None, "train", options)

    def mixed(self, options: RunOptions) -> ProbeSplit | None:
        """Return the train split that further rows come from, if any; raises as :meth:`rows`."""
        if options.mix_in is None:
            return None
        return self._read(options.mix_in, None, "train", options)

    def _read(
        self, probe: ProbeSource, config: str | None, split: str, options: RunOptions
    ) -> ProbeSplit:
        """Read a split, and make of it what the options ask for."""
        source = probe if isinstance(probe, str) else id(probe)
        key: tuple[object, ...] = (source, config, split)
        found = self._keep(key, probe, lambda: open_rows(probe, split, config))
        if options.inputs == "choices":
            key, shown = (*key, options.inputs), found
            found = self._keep(key, probe, lambda: choices_alone(shown))
        if options.labels == "random":
            key, gold = (*key, options.seed), found
            found = self._keep(key, probe, lambda: random_labels(gold, options.seed))
        return found

    def _fold(self, probe: ProbeSource, whole: ProbeSplit, fold: int, other: bool) -> ProbeSplit:
        """Return the rows of a fold, or all others."""
        key = (id(whole), "fold", fold, other)
        return self._keep(key, probe, lambda: take_fold(whole, fold, other))

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
