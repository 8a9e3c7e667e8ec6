"""Splits as runs need them: read once for all runs that are of the same rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from evaluation.items.control_task import choices_alone, random_labels
from evaluation.items.folds import open_rows, take_fold
from evaluation.items.sampling import open_sample, sample
from evaluation.items.sources import ProbeSource, UnknownSplit, find_split, open_probe
from evaluation.items.types import Item, ProbeSplit
from evaluation.options import CHANGING_ROWS, RunOptions, not_default
from kbprobe.errors import UsageError

_KEPT = 32
"""Splits held in memory: those of a probe, its controls and their random labels, or its folds."""

Key: TypeAlias = tuple[object, ...]


def read_facts(probe: ProbeSource, rows: ProbeSplit) -> list[Item]:
    """Return all single facts that a probe asks for beside its questions, of every split.

    Raises:
        UsageError: there are none.
    """
    manifest = rows.manifest
    configs = manifest.sub_questions if manifest else ()
    files = manifest.files if manifest else ()
    names = dict.fromkeys((one.split, one.config) for one in files if one.config in configs)
    parts = [open_probe(probe, split=split, config=config) for split, config in names]
    if not parts:
        raise UsageError(
            f"--facts-first: the rows of {rows.source} rest on no facts that the probe asks for. "
            "Name a probe with such a config, such as encyclopedic_composition"
        )
    return [item for part in parts for item in part.items]


class SplitReader:
    """Reads splits, and keeps those read last: the runs of a study share theirs."""

    def __init__(self) -> None:
        self._held: OrderedDict[Key, tuple[ProbeSource, ProbeSplit]] = OrderedDict()

    def rows(self, probe: ProbeSource, options: RunOptions) -> ProbeSplit:
        """Return the rows that a run evaluates.

        Raises:
            UsageError: there is no such probe, config, split or fold.
            KbprobeError: it cannot be read.
        """
        if (sampled := self._sampled(probe, options)) is not None:
            return sampled
        key, rows = self._read(probe, options.config, options.split, options)
        if (fold := options.fold) is not None:
            key, rows = self._derive(
                (*key, "fold", fold), probe, partial(take_fold, rows, fold, other=False)
            )
        if (limit := options.limit) is None:
            return rows
        drawn = limit, options.limit_by, options.seed
        return self._derive((*key, "limit", *drawn), probe, partial(sample, rows, *drawn))[1]

    def _sampled(self, probe: ProbeSource, options: RunOptions) -> ProbeSplit | None:
        """Return the rows of a limit, read without the others; None where all must be read."""
        limit = options.limit
        more = not_default({*CHANGING_ROWS} - {"limit", "limit_by"}, vars(options))
        if limit is None or more or not isinstance(probe, str):
            return None
        whole: Key = (probe, options.config, options.split, options.label_names)
        # All rows are at hand, or all are needed.
        if whole in self._held:
            return None
        key = (*whole, "limit", limit, options.limit_by, options.seed)
        if key not in self._held:
            try:
                found = find_split(probe, split=options.split, config=options.config)
            except UnknownSplit:  # it may stand for all splits
                return None
            if found is None:
                return None
            own = open_sample(found, limit, options.limit_by, options.seed)
            if own is None:
                return None
            return self._derive(key, probe, lambda: own)[1]
        return self._held[key][1]

    def train(self, probe: ProbeSource, options: RunOptions) -> ProbeSplit:
        """Return the rows that a run may learn from; raises as :meth:`rows`.

        They are the train split of the probe, or of another one; or the folds that are not held
        out.
        """
        if options.train_on is not None:
            return self._read(options.train_on, None, "train", options)[1]
        if (fold := options.fold) is None:
            return self._read(probe, options.config, "train", options)[1]
        key, rows = self._read(probe, options.config, options.split, options)
        others = partial(take_fold, rows, fold, other=True)
        return self._derive((*key, "other folds", fold), probe, others)[1]

    def mixed(self, options: RunOptions) -> ProbeSplit | None:
        """Return the train split that further rows come from, if any; raises as :meth:`rows`."""
        if options.mix_in is None:
            return None
        return self._read(options.mix_in, None, "train", options)[1]

    def _read(
        self, probe: ProbeSource, config: str | None, split: str, options: RunOptions
    ) -> tuple[Key, ProbeSplit]:
        """Read a split, and make of it what the options ask for."""
        source = probe if isinstance(probe, str) else id(probe)
        opened = partial(open_rows, probe, split, config, options.label_names)
        own = source, config, split, options.label_names
        key, found = self._derive(own, probe, opened)
        if options.inputs == "choices":
            key, found = self._derive((*key, "choices"), probe, partial(choices_alone, found))
        if options.labels == "random":
            key = (*key, "random", options.seed)
            key, found = self._derive(key, probe, partial(random_labels, found, options.seed))
        return key, found

    def _derive(
        self, key: Key, probe: ProbeSource, make: Callable[[], ProbeSplit]
    ) -> tuple[Key, ProbeSplit]:
        """Return the split of a key, made unless it is held, and the key."""
        if key not in self._held:
            # The probe is held as well: what is known by its id must not be freed.
            self._held[key] = probe, make()
            if len(self._held) > _KEPT:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return key, self._held[key][1]
